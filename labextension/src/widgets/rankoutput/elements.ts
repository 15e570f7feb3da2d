/** Parts of an output that do not change. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IErrorBody } from '../../services/protocol';
import { foldedHint } from './header/tabbar';

export function createError(): HTMLElement {
  const error = document.createElement('div');
  error.className = 'jpd-Ranks-error';
  error.hidden = true;
  return error;
}

/** What to do about an error. */
export function createAdvice({ code, hint }: IErrorBody): HTMLElement {
  const advice = document.createElement('span');
  advice.className = 'jpd-Ranks-advice';
  advice.dataset.code = code;
  advice.textContent = hint ? `${hint} ` : '';
  return advice;
}

/** Explains the folded tab, below the tabs. */
export function createHint(trans: TranslationBundle): HTMLElement {
  const hint = document.createElement('div');
  hint.className = 'jpd-Ranks-hint';
  // Screen readers read the title of the tab.
  hint.setAttribute('aria-hidden', 'true');
  hint.textContent = foldedHint(trans);
  return hint;
}
