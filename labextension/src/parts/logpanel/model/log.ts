/**
 * A window on a rank's log: the part that the page holds, within limits. It can grow towards the past (`prepend`), and
 * then drops its end; it follows new records only while it has the end.
 */
import { ISignal, Signal } from '@lumino/signaling';
import type { ILogPage, ILogRecord } from '../../../services/protocol';
import { BlockBuilder, boundary, IGapBlock, LogBlock, lostSeparator, measure, printedLines } from './logblocks';

/** How much of a log the page keeps. */
export interface ILogLimits {
  readonly lines: number;
  readonly characters: number;
}

export const DEFAULT_LIMITS: ILogLimits = { lines: 5000, characters: 1024 * 1024 };

export class LogModel {
  constructor(limits: ILogLimits = DEFAULT_LIMITS) {
    this.limits = limits;
  }

  limits: ILogLimits;

  /** Emitted after every change, up to hundreds of times a second. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get blocks(): readonly LogBlock[] {
    return this._builder.blocks;
  }

  /** The last known record, whether shown or not; subscribe from here. */
  get seq(): number {
    return this._seq;
  }

  /**
   * The first record that is completely in the window: request the page above with `before`. The page includes any record
   * that is partly shown above it.
   */
  get first(): number {
    return this.blocks[boundary(this.blocks)]?.seq ?? this._first;
  }

  /** Whether to keep the top of the window when it gets too large, because the user reads there. */
  get keepsTop(): boolean {
    return this._keepsTop;
  }
  set keepsTop(keepsTop: boolean) {
    this._keepsTop = keepsTop;
  }

  /** Whether the log has records above the window. */
  get hasOlder(): boolean {
    return this._hasOlder;
  }

  /** Whether the window has the end of the log, and follows it. */
  get atEnd(): boolean {
    return this._atEnd;
  }

  /** How many lines that were printed are above the window; null if unknown. Figures and headings are no lines. */
  get olderLines(): number | null {
    return this._olderLines;
  }

  /** New records that are below the window. */
  get unseen(): number {
    return this._unseen;
  }

  /** Show the end of the log. */
  load(page: ILogPage): void {
    this._reset();
    this._seq = page.seq;
    this._first = page.first ?? page.seq + 1;
    this._hasOlder = page.more;
    this._olderLines = page.more ? null : 0;
    page.records.forEach(record => this._builder.add(record));
    this._trimTop();
    this._changed.emit();
  }

  /** Append new records; `skipped` records before them are missing. */
  append(records: readonly ILogRecord[], seq: number, skipped: number): void {
    const fresh = records.filter(record => record.seq > this._seq);
    const before = this._seq;
    this._seq = Math.max(this._seq, seq, fresh[fresh.length - 1]?.seq ?? 0);
    if (!this._atEnd) {
      this._unseen += fresh.length + skipped;
    } else {
      if (skipped > 0) {
        this._builder.addGap(before, fresh[0]?.seq ?? seq + 1, skipped);
      }
      fresh.forEach(record => this._builder.add(record));
      if (this._keepsTop) {
        this._trimBottom();
      } else {
        this._trimTop();
      }
    }
    if (fresh.length > 0 || skipped > 0) {
      this._changed.emit();
    }
  }

  /** Put an older page above the window; drops the end if it gets too large. */
  prepend(page: ILogPage): void {
    const { blocks } = this._builder;
    const older = this._build(page.records.filter(record => record.seq < this.first));
    this._olderLines = page.more ? null : 0;
    const cut = blocks.splice(0, boundary(blocks));
    if (cut.length > 0 && cut[0].kind === 'execution') {
      blocks.unshift(cut[0]);
    }
    this._join(older, 0);
    blocks.unshift(...older.blocks);
    this._first = page.first ?? this._first;
    this._hasOlder = page.more;
    this._trimBottom();
    this._changed.emit();
  }

  /** Replace a gap by its records, as far as the page has them. */
  fill(gap: IGapBlock, page: ILogPage): void {
    const at = this._builder.blocks.indexOf(gap);
    if (at < 0) {
      return;
    }
    const records = page.records.filter(r => r.seq > gap.after && r.seq < gap.seq);
    const found = this._build(records, this._builder.blocks[at - 1]?.executionId ?? null);
    this._join(found, at + 1);
    const first = page.first ?? 0; // no records: nothing is left in the gap
    const complete = !page.more || first <= gap.after + 1 || records.length < page.records.length;
    const rest: LogBlock[] =
      complete || records.length === 0
        ? []
        : [{ ...gap, id: this._nextId(), seq: first, records: Math.max(1, gap.records - records.length) }];
    this._builder.blocks.splice(at, 1, ...rest, ...found.blocks);
    this._trimTop();
    this._changed.emit();
  }

  /** Clear the view; the server keeps the log, so scrolling up loads it again. */
  clear(): void {
    this._reset();
    this._first = this._seq + 1;
    this._hasOlder = true;
    this._changed.emit();
  }

  dispose(): void {
    Signal.clearData(this);
  }

  /** Remove a separator at `at` without the start of its execution if the blocks above it have the start. */
  private _join(above: BlockBuilder, at: number): void {
    const blocks = this._builder.blocks;
    const below = blocks[at];
    if (below?.kind !== 'execution' || !below.continued) {
      return;
    }
    const begun = above.execution(below.executionId);
    if (begun) {
      begun.status = below.status;
      begun.seconds = below.seconds;
      blocks.splice(at, 1);
    }
  }

  private _build(records: readonly ILogRecord[], execution: string | null = null): BlockBuilder {
    const builder = new BlockBuilder(this._nextId, execution);
    records.forEach(record => builder.add(record));
    return builder;
  }

  private _trimTop(): void {
    const blocks = this._builder.blocks;
    let { lines, characters } = measure(blocks);
    let count = 0;
    while (this._isTooMuch(lines + 1, characters) && count < blocks.length - 1) {
      lines -= blocks[count].lines;
      characters -= blocks[count].characters;
      this._dropped(blocks[count]);
      count += 1;
    }
    if (count > 0) {
      const gone = blocks.splice(0, count);
      this._first = this._seq + 1;
      this._hasOlder = true;
      const separator = lostSeparator(gone, blocks);
      if (separator) {
        blocks.unshift({ ...separator, id: this._nextId(), seq: blocks[0].seq, continued: true });
      }
    }
  }

  /** The number of lines in missing records is unknown. */
  private _dropped(block: LogBlock): void {
    const isCounted = this._olderLines !== null && block.kind !== 'gap';
    this._olderLines = isCounted ? this._olderLines! + printedLines(block) : null;
  }

  private _trimBottom(): void {
    const blocks = this._builder.blocks;
    let { lines, characters } = measure(blocks);
    while (this._isTooMuch(lines, characters) && blocks.length > 1) {
      const block = blocks.pop()!;
      lines -= block.lines;
      characters -= block.characters;
      this._atEnd = false;
    }
  }

  private _isTooMuch(lines: number, characters: number): boolean {
    return lines > this.limits.lines || characters > this.limits.characters;
  }

  private _reset(): void {
    this._builder = new BlockBuilder(this._nextId);
    this._olderLines = null;
    this._unseen = 0;
    this._atEnd = true;
  }

  private readonly _nextId = (): number => (this._id += 1);
  private _id = 0;
  private _builder = new BlockBuilder(this._nextId);
  private _seq = 0;
  private _first = 1;
  private _hasOlder = false;
  private _atEnd = true;
  private _olderLines: number | null = 0;
  private _unseen = 0;
  private _keepsTop = false;
  private readonly _changed = new Signal<this, void>(this);
}
