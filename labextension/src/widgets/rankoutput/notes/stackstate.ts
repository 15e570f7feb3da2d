/** What ranks are doing, in a list of their stacks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRankStack } from '../../../services/protocol';

/** What a rank does: "waits in barrier, number 4", "idle". */
export function stateOfStack(trans: TranslationBundle, state: IRankStack['state'], call: string | null): string {
  const words: Record<IRankStack['state'], string> = {
    waits: trans.__('waits in %1', call ?? ''),
    runs: trans.__('runs'),
    idle: trans.__('idle'),
    dead: trans.__('dead'),
    unknown: trans.__('does not answer')
  };
  return words[state];
}
