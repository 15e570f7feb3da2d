/** The words that models and services say to people. One bundle: JupyterLab's language changes with a new page only. */
import { nullTranslator, TranslationBundle } from '@jupyterlab/translation';

let current: { trans: TranslationBundle } = { trans: nullTranslator.load('jupyter_dist') };

/** The translator of the page; until one is set, the words are English. */
export function setTranslation(trans: TranslationBundle): void {
  current = { trans };
}

/** The bundle as of now: ask when the words are needed. */
export function translation(): TranslationBundle {
  return current.trans;
}
