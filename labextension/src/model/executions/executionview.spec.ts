import type { IStream } from '@jupyterlab/nbformat';
import { beforeEach, describe, expect, it } from 'vitest';
import type { IViewChange, IViewItem, IViewMessage } from '../../services/protocol';
import vectors from '../../../../tests/vectors/views.json';
import { streamText, ViewModel } from './executionview';

interface IStep {
  message: IViewMessage;
  items: IViewItem[];
}

function said(id: number, text: string, more: Partial<IViewChange> = {}): IViewChange {
  const output = { output_type: 'stream', name: 'stdout', text };
  return { id, seq: id, ranks: '0-1', output, ...more };
}

function texts(view: ViewModel): string[] {
  return view.items.map(item => streamText(item.output as IStream));
}

describe('a view, as in Python', () => {
  it.each(vectors)('$name', ({ steps }) => {
    const view = new ViewModel();
    for (const { message, items } of steps as unknown as IStep[]) {
      expect(view.apply(message)).not.toBe('gap');
      // The seq of an item may grow without anything to send.
      expect(view.items).toEqual(items.map(item => ({ ...item, seq: expect.any(Number) as number })));
    }
  });
});

describe('ViewModel', () => {
  let view: ViewModel;

  beforeEach(() => {
    view = new ViewModel();
    view.apply({
      since: 0,
      seq: 2,
      items: [said(1, 'a', { after: null }), said(2, 'b', { after: 1 })]
    });
  });

  it('puts items in the order told', () => {
    expect(texts(view)).toEqual(['a', 'b']);
    expect(view.seq).toBe(2);
  });

  it('inserts at the front, between and at the end', () => {
    view.apply({
      since: 2,
      seq: 6,
      items: [said(3, 'first', { after: null }), said(4, 'middle', { after: 1 }), said(5, 'last', { after: 2 })]
    });
    expect(texts(view)).toEqual(['first', 'a', 'middle', 'b', 'last']);
  });

  it('appends to a text and takes the new ranks', () => {
    const change = { id: 1, seq: 3, ranks: '0-3', append: '!', after: null };
    expect(view.apply({ since: 2, seq: 3, items: [change] })).toBe('applied');
    expect(texts(view)).toEqual(['a!', 'b']);
    expect(view.items[0].ranks).toBe('0-3');
  });

  it('joins the lines of a text before appending', () => {
    view.apply({
      since: 2,
      seq: 3,
      items: [
        said(1, '', {
          output: { output_type: 'stream', name: 'stdout', text: ['x', 'y'] }
        })
      ]
    });
    const change = { id: 1, seq: 4, ranks: '0-1', append: 'z' };
    view.apply({ since: 3, seq: 4, items: [change] });
    expect(texts(view)).toEqual(['xyz', 'b']);
  });

  it('replaces in place', () => {
    view.apply({ since: 2, seq: 3, items: [said(1, 'A', { after: null })] });
    expect(texts(view)).toEqual(['A', 'b']);
  });

  it('moves an item', () => {
    view.apply({ since: 2, seq: 3, items: [said(1, 'a', { after: 2 })] });
    expect(texts(view)).toEqual(['b', 'a']);
  });

  it('removes before it applies the items', () => {
    view.apply({
      since: 2,
      seq: 3,
      removed: [1],
      items: [said(2, 'b', { after: null }), said(3, 'c', { after: 2 })]
    });
    expect(texts(view)).toEqual(['b', 'c']);
  });

  it('turns an item into an elision and back', () => {
    const elided = { bytes: 10, lines: 1 };
    view.apply({
      since: 2,
      seq: 3,
      items: [{ id: 1, seq: 3, ranks: '0', elided, after: null }]
    });
    expect(view.items[0]).toEqual({ id: 1, seq: 3, ranks: '0', elided });
    view.apply({ since: 3, seq: 4, items: [said(1, 'a', { after: null })] });
    expect(view.items[0].elided).toBeUndefined();
  });

  it('ignores what it has', () => {
    const message = {
      since: 2,
      seq: 3,
      items: [{ id: 1, seq: 3, ranks: '0-1', append: '!', after: null }]
    };
    view.apply(message);
    expect(view.apply(message)).toBe('stale');
    expect(view.apply({ since: 1, seq: 2, items: [] })).toBe('stale');
    expect(texts(view)).toEqual(['a!', 'b']);
  });

  it('refuses what does not build on what it has, and stays whole', () => {
    const late = { since: 3, seq: 4, items: [said(4, 'd', { after: 2 })] };
    expect(view.apply(late)).toBe('gap');
    const early = { since: 1, seq: 4, items: [said(4, 'd', { after: 2 })] };
    expect(view.apply(early)).toBe('gap');
    const unknown = { since: 2, seq: 4, items: [said(4, 'd', { after: 99 })] };
    expect(view.apply(unknown)).toBe('gap');
    const append = { id: 9, seq: 4, ranks: '0', append: 'x' };
    expect(view.apply({ since: 2, seq: 4, items: [append] })).toBe('gap');
    expect(texts(view)).toEqual(['a', 'b']);
    expect(view.seq).toBe(2);
  });

  it('is as it was after a gap in the middle of a message', () => {
    view.apply({ since: 0, seq: 2, items: [said(1, 'a\n'), said(2, 'b\n')] });
    const unknown = said(9, 'z\n', { after: 7 });
    expect(view.apply({ since: 2, seq: 4, items: [said(3, 'c\n'), unknown], removed: [1] })).toBe('gap');
    expect(texts(view)).toEqual(['a\n', 'b\n']);
    expect(view.apply({ since: 2, seq: 4, items: [said(1, 'A\n'), said(3, 'c\n', { after: 2 })] })).toBe('applied');
    expect(texts(view)).toEqual(['A\n', 'b\n', 'c\n']);
  });

  it('starts over with a reset, and with all since 0', () => {
    const items = [said(7, 'new', { after: null })];
    view.apply({ since: 5, seq: 9, items, reset: true });
    expect(texts(view)).toEqual(['new']);
    view.apply({ since: 0, seq: 4, items: [said(8, 'all', { after: null })] });
    expect(texts(view)).toEqual(['all']);
    expect(view.seq).toBe(4);
  });

  it('never changes the array that was handed out', () => {
    const before = view.items;
    view.apply({ since: 2, seq: 3, items: [said(3, 'c', { after: 2 })] });
    expect(before).toHaveLength(2);
    expect(view.items[0]).toBe(before[0]);
  });

  it('takes 10,000 appended items', () => {
    for (let seq = 3; seq < 10003; seq++) {
      const items = [said(seq, 'x', { after: seq - 1 })];
      if (view.apply({ since: seq - 1, seq, items }) !== 'applied') {
        throw new Error(`gap at ${seq}`);
      }
    }
    expect(view.items).toHaveLength(10002);
  });
});
