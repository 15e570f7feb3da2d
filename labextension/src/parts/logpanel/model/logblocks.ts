/**
 * The blocks of a rank's log: a separator per execution, runs of text, rich outputs, notes, gaps. A block is small
 * enough to be rendered within a frame and has only whole lines, so that blocks can be added and removed at both ends
 * of the page. Pure: no network, no DOM.
 */
import type { IOutput } from '@jupyterlab/nbformat';
import type { ILogRecord, ExecutionState } from '../../../services/protocol';
import { firstCharacters } from '../../../model/format/characters';
import { coloursAfter, settle, writeText } from './terminal';

/** A text block ends at this many lines or characters, which the renderer handles well within a frame. */
export const BLOCK_LINES = 200;
export const BLOCK_CHARACTERS = 32768;
/** Longer lines are truncated and marked; otherwise one line could be a whole page. */
export const MAX_LINE = 16384;

type StreamName = 'stdout' | 'stderr';

interface IBlockBase {
  readonly id: number;
  /** Its first record, from which pages and gaps are counted. */
  readonly seq: number;
  readonly executionId: string | null;
  /** It starts in the middle of a record; the block above has the rest. */
  readonly continues: boolean;
  /** Changes when the block must be rendered again. */
  version: number;
  lines: number;
  characters: number;
}

export interface IExecutionBlock extends IBlockBase {
  readonly kind: 'execution';
  readonly count: number | null;
  readonly code: string | null;
  readonly notebook: string | null;
  readonly at: number;
  /** The execution began above the window. */
  readonly continued: boolean;
  status: ExecutionState;
  seconds: number | null;
}

export interface ITextBlock extends IBlockBase {
  readonly kind: 'text';
  readonly name: StreamName;
  text: string;
}

export interface IOutputBlock extends IBlockBase {
  readonly kind: 'output';
  readonly output: IOutput;
}

export interface INoteBlock extends IBlockBase {
  readonly kind: 'note';
  readonly text: string;
}

/** Records that were not sent live because there were too many; they are in the log. */
export interface IGapBlock extends IBlockBase {
  readonly kind: 'gap';
  /** The last record above the gap. */
  readonly after: number;
  readonly records: number;
}

export type LogBlock = IExecutionBlock | ITextBlock | IOutputBlock | INoteBlock | IGapBlock;

/** The record as the server may send it; the notebook is optional. */
type SentRecord = ILogRecord & { notebook?: string | null };

/** Builds blocks from consecutive records. */
export class BlockBuilder {
  /**
   * @param nextId - returns ids that are unique in a view, also across builders.
   * @param execution - the execution of the first records, if its separator is already above.
   */
  constructor(nextId: () => number, execution: string | null = null) {
    this._nextId = nextId;
    this._execution = execution;
  }

  readonly blocks: LogBlock[] = [];

  add(record: SentRecord): void {
    if (record.kind === 'begin') {
      this._begin(record, false);
      return;
    }
    if (record.kind === 'end') {
      this._end(record);
      return;
    }
    if (record.execution_id !== null && record.execution_id !== this._execution) {
      this._begin(record, true);
    }
    this._content(record);
  }

  /** Add a gap: `records` records before `seq` are missing. */
  addGap(after: number, seq: number, records: number): void {
    this._close();
    this.blocks.push({ ...this._base({ seq, execution_id: null }), kind: 'gap', after, records });
  }

  /** The latest separator of an execution. */
  execution(id: string | null): IExecutionBlock | null {
    for (let i = this.blocks.length - 1; i >= 0; i--) {
      const block = this.blocks[i];
      if (block.kind === 'execution' && block.executionId === id) {
        return block;
      }
    }
    return null;
  }

  private _content(record: SentRecord): void {
    if (record.kind === 'stream') {
      this._write(record, record.name ?? 'stdout', record.text ?? '');
      return;
    }
    this._close();
    if (record.kind === 'output' && record.output) {
      const characters = JSON.stringify(record.output).length;
      const lines = Math.max(1, Math.ceil(characters / 200));
      this.blocks.push({ ...this._base(record), kind: 'output', output: record.output, lines, characters });
    } else if (record.text) {
      this.blocks.push({ ...this._base(record), kind: 'note', text: record.text });
    }
  }

  private _begin(record: SentRecord, continued: boolean): void {
    this._close();
    this._execution = record.execution_id;
    this.blocks.push({
      ...this._base(record),
      kind: 'execution',
      count: record.execution_count,
      code: record.code ?? null,
      notebook: record.notebook ?? null,
      at: record.at,
      continued,
      status: 'running',
      seconds: null
    });
  }

  private _end(record: SentRecord): void {
    this._close();
    const block = this.execution(record.execution_id);
    if (block) {
      block.status = record.status ?? 'ok';
      block.seconds = record.seconds ?? null;
      block.version += 1;
    }
    this._execution = null;
  }

  private _write(record: SentRecord, name: StreamName, text: string): void {
    if (this._text?.name !== name) {
      this._close();
    }
    const isNew = this._text === null;
    const written = writeText(this._open, text);
    written.lines.forEach((line, i) => this._line(record, name, line, !isNew || i > 0));
    this._open = written.open.length > 2 * MAX_LINE ? cutLine(settle(written.open)) : written.open;
    const shown = cutLine(settle(this._open));
    if (this._text === null && shown === '' && written.lines.length > 0) {
      return;
    }
    const block = this._textBlock(record, name, !isNew || written.lines.length > 0);
    block.text = this._closed + shown;
    block.characters = block.text.length;
    block.lines = this._closedLines + (shown === '' ? 0 : 1);
    block.version += 1;
  }

  private _line(record: SentRecord, name: StreamName, line: string, continues: boolean): void {
    const block = this._textBlock(record, name, continues);
    this._closed += cutLine(line) + '\n';
    this._closedLines += 1;
    if (this._closedLines >= BLOCK_LINES || this._closed.length >= BLOCK_CHARACTERS) {
      block.text = this._closed;
      block.characters = block.text.length;
      block.lines = this._closedLines;
      block.version += 1;
      this._colours = coloursAfter('', this._closed);
      this._text = null;
    }
  }

  private _textBlock(record: SentRecord, name: StreamName, continues: boolean): ITextBlock {
    if (this._text === null) {
      this._text = { ...this._base(record), kind: 'text', name, text: '', continues };
      this.blocks.push(this._text);
      this._closed = this._colours;
      this._closedLines = 0;
    }
    return this._text;
  }

  /** Start a new block and a new line with the next text. */
  private _close(): void {
    this._text = null;
    this._open = '';
    this._closed = '';
    this._closedLines = 0;
    this._colours = '';
  }

  private _base(record: { seq: number; execution_id: string | null }): IBlockBase {
    return {
      id: this._nextId(),
      seq: record.seq,
      executionId: record.execution_id,
      continues: false,
      version: 0,
      lines: 1,
      characters: 80
    };
  }

  private readonly _nextId: () => number;
  private _execution: string | null;
  private _text: ITextBlock | null = null;
  private _open = '';
  private _closed = '';
  private _closedLines = 0;
  private _colours = '';
}

function cutLine(line: string): string {
  return line.length <= MAX_LINE ? line : `${firstCharacters(line, MAX_LINE)} [...]`;
}

/** How many lines of a block ranks printed; `lines` is how large it is. */
export function printedLines(block: LogBlock): number {
  return block.kind === 'text' ? block.lines : 0;
}

/** How many lines and characters the blocks show. */
export function measure(blocks: readonly LogBlock[]): { lines: number; characters: number } {
  let lines = 0;
  let characters = 0;
  for (const block of blocks) {
    lines += block.lines;
    characters += block.characters;
  }
  return { lines, characters };
}

/** The first block that starts with a record; kept separators are ignored. */
export function boundary(blocks: readonly LogBlock[]): number {
  const isKept = (at: number) => {
    const block = blocks[at];
    return block.kind === 'execution' && block.continued;
  };
  const isWhole = (at: number) => !blocks[at].continues && !(isKept(at) && blocks[at + 1]?.continues);
  let at = 0;
  while (at < blocks.length && !isWhole(at)) {
    at += 1;
  }
  return at;
}

/** The removed separator of the execution that the first remaining block belongs to. */
export function lostSeparator(gone: readonly LogBlock[], blocks: readonly LogBlock[]): IExecutionBlock | null {
  const top = blocks[0];
  if (top.kind === 'execution' || top.executionId === null) {
    return null;
  }
  const found = [...gone].reverse().find(b => b.kind === 'execution' && b.executionId === top.executionId);
  return found?.kind === 'execution' ? found : null;
}
