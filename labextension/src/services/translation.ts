/** The translator for texts in models and services. Global, because JupyterLab's language only changes on reload. */
import { nullTranslator, TranslationBundle } from '@jupyterlab/translation';

let current: { trans: TranslationBundle } = { trans: nullTranslator.load('jupyter_dist') };

/** Set the translator of the page; until then, texts are English. */
export function setTranslation(trans: TranslationBundle): void {
  current = { trans };
}

/** The current translator; get it when a text is needed. */
export function translation(): TranslationBundle {
  return current.trans;
}
