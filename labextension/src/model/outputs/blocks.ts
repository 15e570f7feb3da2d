/**
 * Puts the lines of each set of ranks together, for readers that show plain
 * text. The Python counterpart, which explains how and why,
 * is jupyter_dist/client/bundles/blocks.py; both run tests/vectors/bundles.json.
 */
import { WHITE } from '../format/characters';
import { expandRanks, formatRanks } from '../format/ranks';

const CONTINUES = new RegExp(String.raw`^(?:[${WHITE})\]}]|$)`);
const EXPECTS_MORE = new RegExp(String.raw`[:,([{][${WHITE}]*$`);

/** The lines of a set of ranks. */
export interface IBlock {
  ranks: string;
  lines: string[];
}

interface IOpenBlock {
  ranks: readonly number[];
  lines: string[];
  /** Where its last line starts that does not continue another. */
  unit: number;
}

/** Takes lines in the order of a view, and gives them in blocks. */
export class Blocks {
  /** Add what ranks printed. */
  addText(ranks: string, text: string): void {
    const members = expandRanks(ranks);
    for (const line of text.split('\n')) {
      this._add(ranks, members, [line], this._continues(ranks, members, line));
    }
  }

  /** Add a display or an error: its lines are never parted. */
  addOutput(ranks: string, text: string): void {
    this._add(ranks, expandRanks(ranks), text.split('\n'), false);
  }

  /** All blocks; neighbours of the same ranks are one. */
  close(): IBlock[] {
    this._flush();
    const blocks: IBlock[] = [];
    for (const { ranks, lines } of this._done) {
      const last = blocks[blocks.length - 1];
      if (last?.ranks === ranks) {
        last.lines.push(...lines);
      } else {
        blocks.push({ ranks, lines: [...lines] });
      }
    }
    return blocks;
  }

  private _add(ranks: string, members: readonly number[], lines: string[], continues: boolean): void {
    let block = this._open.get(ranks);
    if (!block) {
      if (continues && this._continue(ranks, members, lines)) {
        return;
      }
      if (this._touched(ranks, members).length > 0) {
        this._flush();
      }
      block = this._begin(ranks, members, []);
    }
    extend(block, lines, continues);
  }

  /** Whether a line belongs to the one before it. */
  private _continues(ranks: string, members: readonly number[], line: string): boolean {
    if (CONTINUES.test(line)) {
      return true;
    }
    const touched = this._touched(ranks, members);
    return touched.length > 0 && touched.every(({ lines }) => EXPECTS_MORE.test(lines[lines.length - 1]));
  }

  /** Continue what the ranks are at in other blocks, if that is possible. */
  private _continue(ranks: string, members: readonly number[], lines: string[]): boolean {
    let touched = this._touched(ranks, members);
    if (touched.length === 1 && touched[0].ranks.length > members.length) {
      const set = new Set(touched[0].ranks);
      if (members.every(rank => set.has(rank))) {
        this._split(touched[0], members);
        touched = [this._open.get(ranks)!];
      }
    }
    const all = formatRanks(touched.flatMap(block => [...block.ranks]));
    if (touched.length === 0 || all !== ranks) {
      return false;
    }
    for (const block of touched) {
      extend(block, lines, true);
    }
    return true;
  }

  /** Split the last unit of a block, because its ranks continue differently. */
  private _split(block: IOpenBlock, ranks: readonly number[]): void {
    const name = formatRanks(block.ranks);
    if (block.unit > 0) {
      this._done.push({ ranks: name, lines: block.lines.slice(0, block.unit) });
    }
    this._open.delete(name);
    const chosen = new Set(ranks);
    const parts = [ranks, block.ranks.filter(rank => !chosen.has(rank))];
    parts.sort((a, b) => a[0] - b[0]);
    for (const part of parts) {
      this._begin(formatRanks(part), part, block.lines.slice(block.unit));
    }
  }

  private _touched(ranks: string, members: readonly number[]): IOpenBlock[] {
    const same = this._open.get(ranks);
    if (same) {
      return [same];
    }
    const found = new Set<IOpenBlock>();
    for (const rank of members) {
      const block = this._of.get(rank);
      if (block) {
        found.add(block);
      }
    }
    return [...found];
  }

  private _begin(name: string, ranks: readonly number[], lines: string[]): IOpenBlock {
    const block = { ranks, lines, unit: 0 };
    this._open.set(name, block);
    ranks.forEach(rank => this._of.set(rank, block));
    return block;
  }

  private _flush(): void {
    for (const { ranks, lines } of this._open.values()) {
      this._done.push({ ranks: formatRanks(ranks), lines });
    }
    this._open.clear();
    this._of.clear();
  }

  private readonly _done: IBlock[] = [];
  /** Of sets of ranks that have no rank in common. */
  private readonly _open = new Map<string, IOpenBlock>();
  /** The open block of each rank: there may be a thousand. */
  private readonly _of = new Map<number, IOpenBlock>();
}

function extend(block: IOpenBlock, lines: string[], continues: boolean): void {
  if (!continues) {
    block.unit = block.lines.length;
  }
  block.lines.push(...lines);
}
