import { describe, expect, it } from 'vitest';
import type { ILogPage, ILogRecord } from '../../../services/protocol';
import { LogModel } from './log';
import type { IGapBlock, LogBlock } from './logblocks';

type Fields = Partial<ILogRecord> & { notebook?: string };

function record(seq: number, fields: Fields): ILogRecord {
  return {
    seq,
    at: seq,
    rank: 0,
    execution_id: 'e-1',
    execution_count: 1,
    kind: 'stream',
    ...fields
  };
}

const begin = (seq: number, id = 'e-1') =>
  record(seq, { kind: 'begin', execution_id: id, code: 'train()', notebook: 'a.ipynb' });
const end = (seq: number, id = 'e-1') => record(seq, { kind: 'end', execution_id: id, status: 'ok', seconds: 0.8 });
const say = (seq: number, text: string, name: 'stdout' | 'stderr' = 'stdout') => record(seq, { text, name });

function page(records: ILogRecord[], more = false): ILogPage {
  const first = records[0]?.seq ?? 1;
  return { records, first, seq: records[records.length - 1]?.seq ?? 0, more };
}

function summary(blocks: readonly LogBlock[]): string[] {
  return blocks.map(block => {
    switch (block.kind) {
      case 'execution':
        return `${block.continued ? 'continued' : 'begin'} ${block.executionId} ${block.status}`;
      case 'text':
        return `${block.name}:${block.text}`;
      case 'gap':
        return `gap ${block.after}..${block.seq}`;
      case 'note':
        return `note ${block.text}`;
      case 'output':
        return block.output.output_type;
    }
  });
}

/** How many printed lines the window has. */
function linesOf(log: LogModel): number {
  return log.blocks.reduce(
    (sum, block) => sum + (block.kind === 'text' ? block.text.replace(/\n$/, '').split('\n').length : 0),
    0
  );
}

describe('LogModel', () => {
  it('makes a separator per execution and joins what follows', () => {
    const log = new LogModel();
    log.load(page([begin(1), say(2, 'a'), say(3, 'b\nc'), say(4, 'err\n', 'stderr'), end(5)]));
    expect(summary(log.blocks)).toEqual(['begin e-1 ok', 'stdout:ab\nc', 'stderr:err\n']);
    expect(log.blocks[0]).toMatchObject({ code: 'train()', seconds: 0.8, notebook: 'a.ipynb' });
  });

  it('rewrites the open line of a progress bar', () => {
    const log = new LogModel();
    log.load(page([begin(1), say(2, '10%')]));
    const version = log.blocks[1].version;
    log.append([say(3, '\r20%')], 3, 0);
    expect(summary(log.blocks)).toEqual(['begin e-1 running', 'stdout:20%']);
    expect(log.blocks[1].version).toBeGreaterThan(version);
  });

  it('takes each record once', () => {
    const log = new LogModel();
    log.load(page([begin(1), say(2, 'a')]));
    log.append([say(2, 'a'), say(3, 'b')], 3, 0);
    expect(summary(log.blocks)[1]).toBe('stdout:ab');
    expect(log.seq).toBe(3);
  });

  it('drops from the top what is too much, and says how much', () => {
    const log = new LogModel({ lines: 1000, characters: 1e9 });
    log.load(page([begin(1)]));
    for (let seq = 2; seq < 402; seq++) {
      log.append([say(seq, 'line\n'.repeat(10))], seq, 0);
    }
    expect(log.blocks.reduce((sum, block) => sum + block.lines, 0)).toBeLessThanOrEqual(1000);
    expect(linesOf(log) + log.olderLines!).toBe(4000);
    expect(log.hasOlder).toBe(true);
  });

  it('counts lines that were printed, not figures, headings and notes', () => {
    const log = new LogModel({ lines: 500, characters: 1e9 });
    log.load(page([]));
    const figure = { output_type: 'display_data', data: { 'image/png': 'A'.repeat(30000) }, metadata: {} };
    let seq = 0;
    for (let cell = 1; cell <= 20; cell++) {
      const id = `e-${cell}`;
      const last = `${cell} without an end`;
      const records = [
        begin(++seq, id),
        say(++seq, 'line\n'.repeat(60) + last),
        { ...record(++seq, { kind: 'output', output: figure }), execution_id: id },
        end(++seq, id)
      ];
      log.append(
        records.map(one => ({ ...one, execution_id: id })),
        seq,
        0
      );
      expect(linesOf(log) + log.olderLines!).toBe(cell * 61);
    }
    expect(log.hasOlder).toBe(true);
    // Back at the beginning nothing is older.
    log.prepend({ records: [], first: 1, seq: 0, more: false });
    expect(log.olderLines).toBe(0);
  });

  it('counts only known lines: those above the first page are unknown', () => {
    const log = new LogModel({ lines: 300, characters: 1e9 });
    log.load(page([say(10, 'a\n'.repeat(200))], true));
    log.append([say(11, 'b\n'.repeat(200))], 11, 0);
    expect([log.hasOlder, log.olderLines]).toEqual([true, null]);
    const whole = new LogModel({ lines: 300, characters: 1e9 });
    whole.load(page([begin(1)]));
    whole.append([say(9, 'a\n'.repeat(200))], 9, 7);
    whole.append([say(10, 'b\n'.repeat(200))], 10, 0);
    expect([whole.hasOlder, whole.olderLines]).toEqual([true, null]);
  });

  it('keeps the separator of what is left of an execution', () => {
    const log = new LogModel({ lines: 300, characters: 1e9 });
    log.load(page([begin(1), say(2, 'a\n'.repeat(250)), say(3, 'b\n'.repeat(250)), end(4)]));
    expect(log.blocks[0]).toMatchObject({ continued: true, code: 'train()', status: 'ok' });
  });

  it('restores what was dropped of a record in the middle', () => {
    const log = new LogModel({ lines: 420, characters: 1e9 });
    const lines = Array.from({ length: 250 }, (_, i) => `${i}\n`).join('');
    log.load(page([begin(1), say(2, lines), say(3, 'b\n'.repeat(250)), end(4)]));
    // No block that is left begins with a record: the page above has to bring all of them back.
    expect(log.first).toBe(5);
    log.prepend(page([begin(1), say(2, lines), say(3, 'b\n'.repeat(250)), end(4)]));
    expect(summary(log.blocks)[0]).toBe('begin e-1 ok');
    const text = log.blocks.map(block => (block.kind === 'text' ? block.text : '')).join('');
    expect(text.startsWith(lines)).toBe(true);
    expect(log.atEnd).toBe(false);
  });

  it('drops from its end while the top is read', () => {
    const log = new LogModel({ lines: 300, characters: 1e9 });
    log.load(page([begin(1), say(2, 'a\n'.repeat(200))]));
    log.keepsTop = true;
    log.append([say(3, 'b\n'.repeat(200)), end(4)], 4, 0);
    expect([log.atEnd, log.olderLines]).toEqual([false, 0]);
    expect(summary(log.blocks)[1].startsWith('stdout:a')).toBe(true);
  });

  it('is bounded by characters also', () => {
    const log = new LogModel({ lines: 5000, characters: 100000 });
    log.append([begin(1)], 1, 0);
    for (let seq = 2; seq < 200; seq++) {
      log.append([say(seq, 'x'.repeat(3000) + '\n')], seq, 0);
    }
    expect(log.blocks.reduce((sum, b) => sum + b.characters, 0)).toBeLessThanOrEqual(100000);
  });

  it('carries colours from block to block', () => {
    const log = new LogModel();
    log.load(page([begin(1), say(2, '\x1b[31m' + 'red\n'.repeat(250) + '\x1b[0m')]));
    const [, first, second] = summary(log.blocks);
    expect(first.startsWith('stdout:\x1b[31mred')).toBe(true);
    expect(second.startsWith('stdout:\x1b[31mred')).toBe(true);
  });

  it('learns from an older page how an execution began', () => {
    const log = new LogModel();
    log.load(page([say(5, 'b\n'), end(6)], true));
    expect(summary(log.blocks)).toEqual(['continued e-1 ok', 'stdout:b\n']);
    log.prepend(page([begin(3), say(4, 'a\n')]));
    expect(summary(log.blocks)).toEqual(['begin e-1 ok', 'stdout:a\n', 'stdout:b\n']);
    expect(log.hasOlder).toBe(false);
  });

  it('leaves the end when it goes far into the past, and counts what it misses', () => {
    const log = new LogModel({ lines: 300, characters: 1e9 });
    log.load(page([say(10, 'new\n'.repeat(200))], true));
    log.prepend(page([say(9, 'old\n'.repeat(200))], true));
    expect(log.atEnd).toBe(false);
    log.append([say(11, 'x\n')], 11, 2);
    expect(log.unseen).toBe(3);
    expect(summary(log.blocks).some(text => text.includes('x'))).toBe(false);
  });

  it('shows a gap, and fills it', () => {
    const log = new LogModel();
    log.load(page([begin(1), say(2, 'a\n')]));
    log.append([say(9, 'z\n')], 9, 6);
    expect(summary(log.blocks)[2]).toBe('gap 2..9');
    log.fill(log.blocks[2] as IGapBlock, page([say(2, 'a\n'), say(3, 'b\n'), say(8, 'y\n')], true));
    expect(summary(log.blocks).slice(2)).toEqual(['stdout:b\ny\n', 'stdout:z\n']);
  });

  it('clears the view, not the log', () => {
    const log = new LogModel();
    log.load(page([begin(1), say(2, 'a\n')]));
    log.clear();
    expect(log.blocks).toHaveLength(0);
    expect([log.first, log.hasOlder]).toEqual([3, true]);
  });
});
