/** Whether the ranks of a cell agree: then it looks as a cell of a kernel does, and its header is out of the way. */
import { isLate } from '../../model/outputs/lateness';
import { knownSeconds, type IShown } from './items/shown';

/** Ranks never print or end at the same moment: a difference while they run is one when it has lasted this long. */
const LASTING_MS = 1000;
const CALM_STATES = new Set(['queued', 'running', 'ok']);

export class Agreement {
  /** Whether all ranks are as far, have printed the same and taken the same time; `now`: in milliseconds, rising. */
  update(shown: IShown, now: number): boolean {
    if (!CALM_STATES.has(shown.state) || shown.error) {
      return false;
    }
    const differs = doDiffer(shown);
    this._differsSince = differs ? Math.min(this._differsSince, now) : Infinity;
    return !differs || (shown.state === 'running' && now - this._differsSince < LASTING_MS);
  }

  private _differsSince = Infinity;
}

function doDiffer({ perRank, items, ranks }: IShown): boolean {
  return (
    perRank.some(({ status }) => status !== perRank[0].status) ||
    items.some(item => item.ranks !== ranks) ||
    isLate(knownSeconds(perRank))
  );
}

/** Show the number beside a result that is all of the output, as a kernel's cell does. */
export function numberResult(output: HTMLElement, { items }: IShown, isQuiet: boolean): void {
  const prompt = output.closest('.jp-OutputArea-child')?.querySelector('.jp-OutputPrompt');
  const first = isQuiet ? items[0]?.output : undefined;
  const count = first?.output_type === 'execute_result' ? first.execution_count : null;
  const words = typeof count === 'number' ? `[${count}]:` : '';
  if (prompt && prompt.textContent !== words) {
    prompt.textContent = words;
  }
}

/** Give the prompt of a cell a tooltip, with the words of the header that is not shown. */
export function describePrompt(output: HTMLElement, words: string): void {
  const prompt = output.closest('.jp-CodeCell')?.querySelector<HTMLElement>('.jp-InputPrompt');
  if (prompt && prompt.title !== words) {
    prompt.title = words;
  }
}
