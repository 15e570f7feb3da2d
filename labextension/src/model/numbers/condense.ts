/**
 * Makes one line of lines of several ranks that differ in numbers only. Works
 * on the items of a view, which stay exact; nothing of it is saved.
 */
import type { IStream } from '@jupyterlab/nbformat';
import type { ISavedItem } from '../../services/protocol';
import { streamText } from '../executions/executionview';
import { expandRanks, formatRanks } from '../format/ranks';
import { ISpread, IWritten, spreadOf } from './spread';
import { isDecimal, IToken, ITokens, tokenize } from './numbertokens';

/** Text, or what ranks wrote in its place. */
export type Part = string | ISpread;

/** How far the ranks of a progress bar are. */
export interface IProgress {
  slowest: { rank: number; text: string };
  fastest: { rank: number; text: string };
}

/** One line that stands for the lines of several ranks. */
export interface ICondensed {
  name: string;
  parts: Part[];
  /** Of bars that differ: `parts` is the line of the slowest rank. */
  progress: IProgress | null;
  numLines: number;
}

export interface ICondensableItem extends ISavedItem {
  key: string;
  condensed?: ICondensed;
}

/** Up to so many lines that differ in whole numbers only, such as ranks, are easier to read one by one. */
const MAX_EXACT_LINES = 8;

/** Part of an item: its first line, its last one, or what is between them. */
interface ISegment {
  item: ICondensableItem;
  text: string;
  from: number;
  isLine: boolean;
  ranks: number[];
}

export class Condenser {
  /**
   * The items with lines that differ in numbers only made one. Items that have
   * none stay the same objects. After a condensed line of `opened` come its
   * exact ones.
   */
  apply(items: readonly ICondensableItem[], opened: ReadonlySet<string>): ICondensableItem[] {
    const out = new Out();
    let open: ISegment[] = [];
    let ranks = new Set<number>();
    for (const segment of items.flatMap(segmentsOf)) {
      if (!this._joins(open[0], ranks, segment)) {
        this._flush(open, opened, out);
        open = [];
        ranks = new Set();
      }
      open.push(segment);
      segment.ranks.forEach(rank => ranks.add(rank));
    }
    this._flush(open, opened, out);
    // What was not asked for this time is of lines that are gone.
    this._known = this._seen;
    this._seen = new Map();
    this._condensed = this._made;
    this._made = new Map();
    return out.close();
  }

  /** Whether a segment belongs to the lines from `first` on, which are of `ranks`. */
  private _joins(first: ISegment | undefined, ranks: ReadonlySet<number>, segment: ISegment): boolean {
    return (
      first !== undefined &&
      first.isLine &&
      segment.isLine &&
      nameOf(first) === nameOf(segment) &&
      !segment.ranks.some(rank => ranks.has(rank)) &&
      this._tokens(first.text).template === this._tokens(segment.text).template
    );
  }

  private _flush(lines: readonly ISegment[], opened: ReadonlySet<string>, out: Out): void {
    const key = lines.length > 1 ? `numbers-${lines[0].item.key}-${lines[0].from}` : '';
    const condensed = key ? this._condense(key, lines) : null;
    if (condensed) {
      const ranks = formatRanks(lines.flatMap(line => line.ranks));
      out.add({ key, ranks, condensed });
    }
    if (!condensed || opened.has(key)) {
      lines.forEach(line => out.addSegment(line));
    }
  }

  /** The same object as long as the lines are the same. */
  private _condense(key: string, lines: readonly ISegment[]): ICondensed | null {
    const signature = lines.map(({ item, text }) => `${item.ranks}\u0000${text}`).join('\u0000');
    let made = this._condensed.get(key);
    if (made?.signature !== signature) {
      const all = lines.map(({ text }) => this._tokens(text));
      made = { signature, condensed: condense(lines, all) };
    }
    this._made.set(key, made);
    return made.condensed;
  }

  private _tokens(text: string): ITokens {
    const tokens = this._seen.get(text) ?? this._known.get(text) ?? tokenize(text.replace(/\n$/, ''));
    this._seen.set(text, tokens);
    return tokens;
  }

  private _condensed = new Map<string, IMade>();
  private _known = new Map<string, ITokens>();
  private _made = new Map<string, IMade>();
  private _seen = new Map<string, ITokens>();
}

interface IMade {
  signature: string;
  condensed: ICondensed | null;
}

/** Collects segments, and joins an item's segments that are side by side. */
class Out {
  add(item: ICondensableItem): void {
    this._flush();
    this._items.push(item);
  }

  addSegment(segment: ISegment): void {
    if (this._item !== segment.item || segment.from !== this._from + this._text.length) {
      this._flush();
      this._item = segment.item;
      this._from = segment.from;
    }
    this._text += segment.text;
  }

  close(): ICondensableItem[] {
    this._flush();
    return this._items;
  }

  private _flush(): void {
    const { _item: item, _from: from, _text: text } = this;
    this._item = null;
    this._text = '';
    if (item?.output?.output_type !== 'stream') {
      this._items.push(...(item ? [item] : []));
    } else if (text.length === streamText(item.output as IStream).length) {
      this._items.push(item);
    } else {
      const output = { ...item.output, text } as IStream;
      this._items.push({ ...item, key: `${item.key}-${from}`, output });
    }
  }

  private _from = 0;
  private _item: ICondensableItem | null = null;
  private readonly _items: ICondensableItem[] = [];
  private _text = '';
}

/** Only the first and the last line of an item have neighbours of other ranks. */
function segmentsOf(item: ICondensableItem): ISegment[] {
  const ranks = expandRanks(item.ranks);
  if (item.output?.output_type !== 'stream') {
    return [{ item, text: '', from: 0, isLine: false, ranks }];
  }
  const text = streamText(item.output as IStream);
  const first = text.indexOf('\n') + 1 || text.length;
  const last = Math.max(text.lastIndexOf('\n', text.length - 2) + 1, first);
  const ends = [0, first, last, text.length];
  const segments = [0, 1, 2].map(i => ({
    item,
    text: text.slice(ends[i], ends[i + 1]),
    from: ends[i],
    isLine: i !== 1,
    ranks
  }));
  return segments.filter(segment => segment.text || text === '');
}

function condense(lines: readonly ISegment[], all: readonly ITokens[]): ICondensed | null {
  const places = all[0].tokens.map((_, place) => all.map(({ tokens }) => tokens[place]));
  const varying = places.filter(differ);
  if (all.some(({ tokens }) => tokens.length !== places.length) || varying.length === 0) {
    return null;
  }
  const bar = all[0].tokens.findIndex(({ kind }) => kind === 'bar');
  const some = { name: nameOf(lines[0]), numLines: lines.length };
  if (bar > 0) {
    return { ...some, ...progressOf(lines, places[bar - 1]) };
  }
  if (lines.length <= MAX_EXACT_LINES && !varying.some(place => place.some(isDecimal))) {
    return null;
  }
  const parts: Part[] = [];
  places.forEach((place, i) => {
    parts.push(all[0].words[i], differ(place) ? spreadOf(written(lines, place), varying.length) : place[0].text);
  });
  parts.push(all[0].words[places.length]);
  return { ...some, parts: joined(parts), progress: null };
}

function progressOf(lines: readonly ISegment[], percents: readonly IToken[]): Pick<ICondensed, 'parts' | 'progress'> {
  const order = lines.map((_, i) => i).sort((a, b) => percents[a].value - percents[b].value || a - b);
  const [slowest] = order;
  const fastest = order.find(i => percents[i].value === percents[order[order.length - 1]].value)!;
  const end = (i: number): IProgress['slowest'] => ({ rank: lines[i].ranks[0], text: `${percents[i].text}%` });
  const differs = percents[slowest].value !== percents[fastest].value;
  return {
    parts: [lines[slowest].text.replace(/\n$/, '')],
    progress: differs ? { slowest: end(slowest), fastest: end(fastest) } : null
  };
}

function written(lines: readonly ISegment[], place: readonly IToken[]): IWritten[] {
  const all = lines.flatMap(({ ranks }, i) => ranks.map(rank => ({ rank, token: place[i] })));
  return all.sort((a, b) => a.rank - b.rank);
}

function differ(place: readonly IToken[]): boolean {
  return place.some(({ text }) => text !== place[0].text);
}

function joined(parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out[out.length - 1];
    if (typeof part === 'string' && typeof last === 'string') {
      out[out.length - 1] = last + part;
    } else if (part !== '') {
      out.push(part);
    }
  }
  return out;
}

function nameOf({ item }: ISegment): string {
  return (item.output as IStream).name;
}
