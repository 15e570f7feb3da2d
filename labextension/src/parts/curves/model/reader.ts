/**
 * Reads curves from the items of a view as it grows. Each line of each rank is read once, however items are folded,
 * joined and left out meanwhile: the place of a line is how many complete lines of its rank come before it.
 */
import type { IStream } from '@jupyterlab/nbformat';
import type { ISavedItem } from '../../../services/protocol';
import { streamText } from '../../../model/executions/executionview';
import { expandRanks } from '../../../model/format/ranks';
import { namedNumbers } from './named';
import { Curve } from './series';

/** So many names; more are no curves but text. */
const MAX_NAMES = 200;
/** Lines between two looks at the clock. */
const LINES_PER_LOOK = 50;

export class CurveReader {
  /** The curves in the order in which they appeared. */
  get curves(): Curve[] {
    return [...this._named.values()].filter(({ isCurve }) => isCurve);
  }

  /** Rises with each line that had numbers. */
  get version(): number {
    return this._version;
  }

  /** How many lines of the ranks were left out before they could be read. */
  get numMissed(): number {
    return this._numMissed;
  }

  /** Read what is new. False if `deadline` (of `performance.now()`) came first: call it again. */
  read(items: readonly ISavedItem[], deadline: number): boolean {
    const at = new Map<number, number>();
    for (const item of items) {
      const ranks = this._expand(item.ranks);
      if (item.elided) {
        this._skip(ranks, item.elided.lines, at);
      } else if (
        item.output?.output_type === 'stream' &&
        !this._readStream(item.output as IStream, ranks, at, deadline)
      ) {
        return false;
      }
    }
    let isDone = true;
    for (const [rank, num] of this._read) {
      if (num > (at.get(rank) ?? 0)) {
        // Its output was cleared: what is there now is new.
        this._read.set(rank, 0);
        isDone &&= !at.get(rank);
      }
    }
    return isDone;
  }

  private _skip(ranks: readonly number[], num: number, at: Map<number, number>): void {
    for (const rank of ranks) {
      const next = (at.get(rank) ?? 0) + num;
      const read = this._read.get(rank) ?? 0;
      at.set(rank, next);
      if (next > read) {
        this._numMissed += next - read;
        this._read.set(rank, next);
      }
    }
  }

  private _readStream(output: IStream, ranks: readonly number[], at: Map<number, number>, deadline: number): boolean {
    const text = streamText(output);
    const numLines = this._count(output, text);
    // The first line that some rank has not read.
    const unread = ranks.map(rank => (this._read.get(rank) ?? 0) - (at.get(rank) ?? 0));
    const first = Math.max(0, Math.min(...unread));
    let start = first < numLines ? startOf(text, first) : 0;
    for (let line = first; line < numLines; line++) {
      if (line % LINES_PER_LOOK === 0 && performance.now() > deadline) {
        return false;
      }
      const end = text.indexOf('\n', start);
      const readers = ranks.filter((_, i) => unread[i] <= line);
      this._add(text.slice(start, end), readers);
      readers.forEach(rank => this._read.set(rank, (at.get(rank) ?? 0) + line + 1));
      start = end + 1;
    }
    ranks.forEach(rank => at.set(rank, (at.get(rank) ?? 0) + numLines));
    return true;
  }

  private _add(line: string, ranks: readonly number[]): void {
    const { step, values } = namedNumbers(line);
    for (const value of values) {
      let curve = this._named.get(value.name);
      if (!curve && this._named.size < MAX_NAMES) {
        curve = new Curve(value.name);
        this._named.set(value.name, curve);
      }
      for (const rank of curve ? ranks : []) {
        curve!.add(rank, value, step);
      }
      this._version += 1;
    }
  }

  /** Outputs that did not change are the same objects. */
  private _count(output: IStream, text: string): number {
    let num = this._numLines.get(output);
    if (num === undefined) {
      num = 0;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) {
        num += 1;
      }
      this._numLines.set(output, num);
    }
    return num;
  }

  private _expand(ranks: string): readonly number[] {
    let all = this._sets.get(ranks);
    if (!all) {
      all = expandRanks(ranks);
      this._sets.set(ranks, all);
    }
    return all;
  }

  private readonly _named = new Map<string, Curve>();
  private readonly _numLines = new WeakMap<object, number>();
  private _numMissed = 0;
  /** How many complete lines of each rank were read. */
  private readonly _read = new Map<number, number>();
  private readonly _sets = new Map<string, readonly number[]>();
  private _version = 0;
}

function startOf(text: string, line: number): number {
  let start = 0;
  for (let i = 0; i < line; i++) {
    start = text.indexOf('\n', start) + 1;
  }
  return start;
}
