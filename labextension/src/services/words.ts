/** Sentences of the server and of groups, in the page's language. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ICellFinding, IWords } from './protocol';

/** Sentences have sentences as values. */
const MAX_DEPTH = 12;

/**
 * The sentence by its words, whose templates are in the catalogues (`.ci/translations.py`), or the English text where there
 * are none, as from a group of an earlier version. Words may come from a file, and be anything.
 */
export function inWords(trans: TranslationBundle, english: string, words: unknown): string {
  return (Array.isArray(words) && said(trans, words, MAX_DEPTH)) || english;
}

/** What was found about a cell, in the page's language. */
export function foundInWords<T extends ICellFinding>(trans: TranslationBundle, found: T): T {
  const { message, message_words, evidence, evidence_words, advice, advice_words } = found;
  return {
    ...found,
    message: inWords(trans, message, message_words),
    evidence: evidence.map((sentence, i) => inWords(trans, sentence, evidence_words?.[i])),
    advice: inWords(trans, advice, advice_words)
  };
}

function said(trans: TranslationBundle, words: readonly unknown[], depth: number): string {
  return depth > 0 && words.every(isWords) ? words.map(one => sentence(trans, one, depth)).join(' ') : '';
}

function sentence(trans: TranslationBundle, { text, plural, values }: IWords, depth: number): string {
  const shown = values.map(value => (Array.isArray(value) ? said(trans, value, depth - 1) : String(value)));
  /* eslint-disable jupyter/no-dynamic-translation -- templates are collected where the sentences are made */
  return typeof plural === 'string'
    ? trans.ngettext(text, plural, Number(shown[0]), ...shown.slice(1))
    : trans.gettext(text, ...shown);
  /* eslint-enable jupyter/no-dynamic-translation */
}

function isWords(value: unknown): value is IWords {
  const { text, values } = (value ?? {}) as Partial<IWords>;
  return typeof text === 'string' && Array.isArray(values);
}
