/** What ranks are doing, in a list of their stacks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRankStack } from '../../../services/protocol';

type IStackOwner = Pick<IRankStack, 'ranks' | 'state' | 'call'>;

/** What a rank or several do: "waits in barrier, number 4", "wait in barrier, number 4", "idle". */
export function stateOfStack(trans: TranslationBundle, { ranks, state, call }: IStackOwner): string {
  const isOne = /^\d+$/.test(ranks);
  const words: Record<IRankStack['state'], string> = {
    waits: isOne ? trans.__('waits in %1', call ?? '') : trans.__('wait in %1', call ?? ''),
    runs: isOne ? trans.__('runs') : trans.__('run'),
    idle: trans.__('idle'),
    dead: trans.__('dead'),
    unknown: isOne ? trans.__('does not answer') : trans.__('do not answer')
  };
  return words[state];
}
