/** A catalogue as JupyterLab's page reads it. */
import { Gettext } from '@jupyterlab/translation';
import * as fs from 'node:fs';

/** Return the translations of a language, loaded as JupyterLab's manager of translations does. */
export function catalogue(language: string): Gettext {
  const file = `jupyter_dist/locale/${language}/LC_MESSAGES/jupyter_dist.json`;
  const texts = JSON.parse(fs.readFileSync(file, 'utf8'));
  texts[''].pluralForms = texts[''].plural_forms;
  const gettext = new Gettext({ domain: 'jupyter_dist', locale: language });
  gettext.loadJSON(texts, 'jupyter_dist');
  return gettext;
}
