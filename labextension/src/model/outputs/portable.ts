/**
 * The saved form of a cell's output, which every reader of notebooks can show: text with the labels of its ranks, and
 * figures, tables and errors as separate outputs (docs/decisions/0019). The bundle, in the first output, names the
 * other outputs instead of repeating them, so that each is saved once.
 *
 * The Python counterpart, for cells of kernels, is jupyter_dist/client/bundles/portable.py; both run tests/vectors/portable.json.
 */
import type { IDisplayData, IOutput } from '@jupyterlab/nbformat';
import { IRanksBundle, ISavedItem, RANKS_MIME } from '../../services/protocol';
import { numCharacters } from '../format/characters';
import { expandRanks, formatRanks } from '../format/ranks';
import type { IBlock } from './blocks';
import { bounded, boundedBlocks, fallbackText, MAX_FALLBACK_CHARS, MAX_FALLBACK_LINES, rankLabel } from './bundle';
import { isOutput } from './parsebundle';

/** Marks an output that belongs to a bundle: with this extension, the bundle shows it. */
export const PART_MIME = 'application/vnd.jupyter-dist.part+json';

/** Further figures and errors stay in the bundle, and are text elsewhere. */
const MAX_PARTS = 200;
const MIN_LINES = 10;
const MIN_CHARS = 500;
/** HTML beside the text is saved as long as all is at most so many times as large as without parts and HTML. */
const MAX_GROWTH = 1.25;

/** An output that stands on its own, and the text before it. */
interface ISection {
  readonly text: ISavedItem[];
  /** Null at the end. */
  rich: { readonly output: IOutput; ranks: string } | null;
}

/** The outputs of a cell whose execution has ended; the first has the bundle. */
export function portableOutputs(bundle: IRanksBundle): IOutput[] {
  const { sections, sectionOf } = divide(bundle.items);
  const texts = sections.map(
    (section, i) => new Text(section, sections[i - 1], sections.length, i === sections.length - 1 ? bundle : null)
  );
  const outputs: IOutput[] = [];
  const positions: number[] = [];
  sections.forEach(({ rich }, i) => {
    if (i === 0 || !texts[i].isEmpty) {
      outputs.push(texts[i].output(bundle.execution_id));
    }
    if (rich) {
      positions.push(outputs.length);
      outputs.push(marked(rich.output, bundle.execution_id));
    }
  });
  const items = bundle.items.map(item => {
    const section = sectionOf.get(item);
    return section === undefined ? item : { ranks: item.ranks, part: positions[section] };
  });
  const first = outputs[0] as IDisplayData;
  const own = { ...bundle, items } as unknown as IDisplayData['data'][string];
  outputs[0] = { ...first, data: { [RANKS_MIME]: own, 'text/plain': first.data['text/plain'] } };
  addHtml(outputs, texts, size(bundle) + numCharacters(fallbackText(bundle)));
  return outputs;
}

/** Whether some items of a bundle are in other outputs. */
export function hasParts(bundle: IRanksBundle | null): boolean {
  return bundle?.items.some(item => item.part !== undefined) ?? false;
}

/** The bundle with its parts; null if one is not there. `after`: the outputs after the bundle's. */
export function joinParts(bundle: IRanksBundle, after: readonly IOutput[]): IRanksBundle | null {
  return hasParts(bundle) ? (findParts(bundle, after)?.joined ?? null) : bundle;
}

/** The bundle with its parts, and where these are among the outputs after it. */
export function findParts(
  bundle: IRanksBundle,
  after: readonly IOutput[]
): { joined: IRanksBundle; places: Set<number> } | null {
  const numbered = numberedParts(bundle.execution_id, after);
  const places = new Set<number>();
  const items: ISavedItem[] = [];
  for (const item of bundle.items) {
    if (item.part === undefined) {
      items.push(item);
      continue;
    }
    const place = numbered.size > 0 ? (numbered.get(item.part) ?? -1) : item.part - 1;
    const output = unmarked(after[place], bundle.execution_id);
    if (!output) {
      return null;
    }
    places.add(place);
    items.push({ ranks: item.ranks, output });
  }
  return { joined: { ...bundle, items }, places };
}

/** Where the parts are that a kernel has sent: other outputs can come between them, so their marks have numbers. */
function numberedParts(execution: string, after: readonly IOutput[]): Map<number, number> {
  const found = new Map<number, number>();
  after.forEach((output, place) => {
    const mark = markOf(output);
    if (mark?.of === execution && typeof mark.part === 'number') {
      found.set(mark.part, place);
    }
  });
  return found;
}

/** Which section each rich item is in; equal ones are in one. */
function divide(items: readonly ISavedItem[]): { sections: ISection[]; sectionOf: Map<ISavedItem, number> } {
  const sections: ISection[] = [{ text: [], rich: null }];
  const sectionOf = new Map<ISavedItem, number>();
  const known = new Map<string, number>();
  for (const item of items) {
    const last = sections.length - 1;
    if (!isRich(item) || (last >= MAX_PARTS && !known.has(JSON.stringify(item.output)))) {
      sections[last].text.push(item);
      continue;
    }
    const key = JSON.stringify(item.output);
    const at = known.get(key) ?? last;
    sectionOf.set(item, at);
    if (known.has(key)) {
      const { rich } = sections[at];
      rich!.ranks = formatRanks([...new Set([...expandRanks(rich!.ranks), ...expandRanks(item.ranks)])]);
    } else {
      known.set(key, last);
      sections[last].rich = { output: item.output!, ranks: item.ranks };
      sections.push({ text: [], rich: null });
    }
  }
  return { sections, sectionOf };
}

/** Whether plain text does not show it as well. */
function isRich({ output }: ISavedItem): boolean {
  if (output?.output_type === 'error') {
    return true;
  }
  const data = output?.data as object | undefined;
  return data !== undefined && Object.keys(data).some(mime => mime !== 'text/plain');
}

/** The text of a section: what ranks printed, and which ranks the next output is of. */
class Text {
  constructor(section: ISection, before: ISection | undefined, count: number, end: IRanksBundle | null) {
    this._maxLines = Math.max(MIN_LINES, Math.floor(MAX_FALLBACK_LINES / count));
    this._maxChars = Math.max(MIN_CHARS, Math.floor(MAX_FALLBACK_CHARS / count));
    this._blocks = boundedBlocks(section.text, this._maxLines);
    const ranks = section.rich?.ranks;
    const shown = this._blocks[this._blocks.length - 1]?.ranks ?? before?.rich?.ranks;
    this._label = ranks !== undefined && ranks !== shown ? ranks : null;
    this._end = end && endOf(end, before === undefined && this._blocks.length === 0);
  }

  get isEmpty(): boolean {
    return this._blocks.length === 0 && this._label === null && this._end === null;
  }

  output(execution: string): IDisplayData {
    return {
      output_type: 'display_data',
      data: { [PART_MIME]: { of: execution }, 'text/plain': this.plain },
      metadata: {}
    };
  }

  get plain(): string {
    const lines = this._blocks.flatMap(({ ranks, lines }) => [`[${rankLabel(ranks)}]`, ...lines]);
    const rest = [
      ...(this._label === null ? [] : [`[${rankLabel(this._label)}]`]),
      ...(this._end === null ? [] : [this._end])
    ];
    return bounded([...lines, ...rest], this._maxLines + rest.length, this._maxChars);
  }

  get html(): string {
    const label = this._label === null ? '' : `<div><b>${escaped(rankLabel(this._label))}</b></div>`;
    const end = this._end === null ? '' : `<div>${escaped(this._end)}</div>`;
    return this._blocks.map(blockHtml).join('') + label + end;
  }

  private readonly _blocks: IBlock[];
  private readonly _end: string | null;
  private readonly _label: string | null;
  private readonly _maxChars: number;
  private readonly _maxLines: number;
}

/** What the text ends with: why it was lost, or that there was no output. */
function endOf({ error, state, ranks }: IRanksBundle, isBare: boolean): string | null {
  if (error) {
    return `[${state}] ${error.message}`;
  }
  return isBare ? `[${rankLabel(ranks)}] ${state}` : null;
}

/** Nothing in it that is not escaped. */
function blockHtml({ ranks, lines }: IBlock): string {
  return `<details open><summary><b>${escaped(rankLabel(ranks))}</b></summary><pre style="font-family:monospace">${escaped(lines.join('\n'))}</pre></details>`;
}

function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, char => entities[char]);
}

/** Put HTML beside the texts, from the first on, while there is room. */
function addHtml(outputs: IOutput[], texts: readonly Text[], before: number): void {
  let room = MAX_GROWTH * before - outputs.reduce((sum, output) => sum + size(output), 0);
  const htmls = texts.filter((text, i) => i === 0 || !text.isEmpty).map(text => text.html);
  const isText = (output: IOutput, i: number): boolean =>
    i === 0 || Object.keys(output.data ?? {}).join() === `${PART_MIME},text/plain`;
  outputs.filter(isText).forEach((output, i) => {
    const html = htmls[i];
    room -= size(html) + 20;
    if (html && room >= 0) {
      (output.data as Record<string, unknown>)['text/html'] = html;
    }
  });
}

function size(value: unknown): number {
  return numCharacters(JSON.stringify(value));
}

function marked(output: IOutput, execution: string): IOutput {
  if (output.output_type === 'error') {
    return output;
  }
  return { ...output, data: { ...(output.data as object), [PART_MIME]: { of: execution } } } as IOutput;
}

/** A kernel can send displays only: the mark on a display that stands for another output, and the output's number. */
interface IMark {
  readonly of?: unknown;
  readonly part?: unknown;
  readonly error?: unknown;
  readonly execution_count?: unknown;
}

/** The mark of a part; of text between parts, too. */
export function markOf(output: IOutput | undefined): IMark | null {
  const data = output?.data;
  const mark = typeof data === 'object' && data !== null ? (data as Record<string, unknown>)[PART_MIME] : null;
  return typeof mark === 'object' ? mark : null;
}

/** The output of a part, if it is one of this execution. Errors of pages have no room for a mark. */
function unmarked(output: IOutput | undefined, execution: string): IOutput | null {
  const mark = markOf(output);
  const found = mark?.of === execution ? original(output!, mark) : output?.output_type === 'error' ? output : null;
  return found && isOutput(found) ? found : null;
}

/** The output that was marked. */
function original(output: IOutput, { error, execution_count }: IMark): IOutput {
  const data = { ...(output.data as Record<string, unknown>) };
  delete data[PART_MIME];
  if (error !== undefined) {
    const { ename, evalue } = (error ?? {}) as Record<string, string>;
    const text = data['text/plain'] ?? '';
    return { output_type: 'error', ename, evalue, traceback: [Array.isArray(text) ? text.join('') : String(text)] };
  }
  const result = execution_count === undefined ? {} : { output_type: 'execute_result', execution_count };
  return { ...output, ...result, data } as IOutput;
}
