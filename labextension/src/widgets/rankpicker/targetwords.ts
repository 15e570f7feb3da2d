/** The texts for where cells run. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IGroup } from '../../services/protocol';
import { stateWord } from '../states/statewords';

/** "train (4 ranks, ready)". */
export function groupWords(trans: TranslationBundle, { name, state, world_size: size }: IGroup): string {
  return trans._n('%2 (%1 rank, %3)', '%2 (%1 ranks, %3)', size, name, stateWord(trans, state));
}

/** A group that the server does not have: it was asked for a moment ago, or it is not running. */
export function absentWords(trans: TranslationBundle, name: string, isStarting: boolean): string {
  return isStarting ? trans.__('%1 (starting\u2026)', name) : trans.__('%1 (not running)', name);
}

/** What the control is for. */
export function targetHint(trans: TranslationBundle): string {
  return trans.__('Where cells run: the kernel, or a group of torch.distributed processes, called ranks');
}
