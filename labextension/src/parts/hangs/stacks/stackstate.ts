/** Where ranks are and which call they wait in, in the page's language. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRankStack, IVerdictPart } from '../../../services/protocol';
import { inWords } from '../../../services/words';

type IStackOwner = Pick<IRankStack, 'ranks' | 'state' | 'call' | 'call_words'>;

/** What a rank or several do: "waits in barrier, number 4", "wait in barrier, number 4", "idle". */
export function stateOfStack(trans: TranslationBundle, { ranks, state, call, call_words: parts }: IStackOwner): string {
  const called = inWords(trans, call ?? '', parts);
  const isOne = /^\d+$/.test(ranks);
  const words: Record<IRankStack['state'], string> = {
    waits: isOne ? trans.__('waits in %1', called) : trans.__('wait in %1', called),
    runs: isOne ? trans.__('runs') : trans.__('run'),
    idle: trans.__('idle'),
    dead: trans.__('dead'),
    unknown: isOne ? trans.__('does not answer') : trans.__('do not answer')
  };
  return words[state];
}

/** The line that ranks are at, or since when they are idle; empty if it is not known. */
export function placeWords(trans: TranslationBundle, { place, place_words: words }: IVerdictPart): string {
  return inWords(trans, place ?? '', words);
}
