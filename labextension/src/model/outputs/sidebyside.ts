/** Which outputs of ranks stand side by side: neighbouring figures and tables of different ranks. Pure. */
import type { IMimeBundle, IOutput } from '@jupyterlab/nbformat';
import { expandRanks } from '../format/ranks';

interface ISideItem {
  key: string;
  ranks: string;
  output?: IOutput;
}

/** The MIME types of what is looked at rather than read. */
const PICTURE = /^(image\/.+|text\/html|application\/(vnd\.plotly\.|vnd\.vega|geo\+json|pdf).*)$/;
const WIDGET = 'application/vnd.jupyter.widget-view+json';

/** Whether an output is a figure or a table; widgets are neither. */
export function isFigure(output: IOutput | undefined): boolean {
  const data = output?.data as IMimeBundle | undefined;
  return data !== undefined && !(WIDGET in data) && Object.keys(data).some(type => PICTURE.test(type));
}

/** The items that stand beside each, by key; items that stand alone are not in it. */
export function sideBySide<T extends ISideItem>(items: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const runs = new Map<string, T[]>();
  let run: T[] = [];
  let ranks = new Set<number>();
  for (const item of items) {
    const isOne = isFigure(item.output);
    const own = isOne ? expandRanks(item.ranks) : [];
    if (!isOne || own.some(rank => ranks.has(rank))) {
      // The next figure of a rank begins a new row, so that each rank keeps its column.
      run = [];
      ranks = new Set();
    }
    if (isOne) {
      run.push(item);
      own.forEach(rank => ranks.add(rank));
      runs.set(item.key, run);
    }
  }
  return new Map([...runs].filter(([, beside]) => beside.length > 1));
}
