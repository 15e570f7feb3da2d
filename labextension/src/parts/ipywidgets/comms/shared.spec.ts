import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ICommNews } from '../../../services/protocol';
import { FIRST_SETTLE_MS, ISharedKernel, isShared, SETTLE_MS, SharedWidgets } from './shared';
import { WidgetStates } from './states';

const ROOTS = new Map([
  [0, 'a'],
  [2, 'b']
]);

function news(kind: ICommNews['kind'], comm_id: string, state: object, rank = 0): ICommNews {
  return { seq: 0, kind, rank, comm_id, data: { method: 'update', state } };
}

/** A page's widgets: a box with a slider on each rank. */
class Page {
  constructor() {
    for (const [rank, id] of ROOTS) {
      this.take(news('comm_open', id, { _model_name: 'BoxModel', children: [`IPY_MODEL_${id}-slider`] }, rank));
      this.take(news('comm_open', `${id}-slider`, { value: 1, name: 'lr' }, rank));
    }
  }

  take(message: ICommNews): void {
    const { kind, comm_id: id } = message;
    if (kind === 'comm_close') {
      this.states.close(id!);
    } else {
      this.states[kind === 'comm_open' ? 'open' : 'say'](message);
    }
    void this.shared.follow(message);
  }

  readonly busy = new Set<number>();
  readonly log: ICommNews[] = [];
  numChanges = 0;
  readonly states = new WidgetStates();
  private _kernel: ISharedKernel = {
    open: async comms => void this.log.push(...comms),
    say: async message => void this.log.push(message),
    close: async message => void this.log.push(message),
    waitsFor: rank => this.busy.has(rank)
  };
  readonly shared = new SharedWidgets(this.states, this._kernel, () => (this.numChanges += 1));
}

describe('equal widgets of ranks', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('are one, with parts of its own', async () => {
    const page = new Page();
    const id = page.shared.find(ROOTS)!;
    expect(isShared(id)).toBe(true);
    await page.shared.ready;
    const [box, slider] = page.log;
    expect(box.comm_id).toBe(id);
    expect((box.data!.state as { children: string[] }).children).toEqual([`IPY_MODEL_${slider.comm_id}`]);
    expect(slider.data!.state).toEqual({ value: 1, name: 'lr' });

    // What is changed in it goes to the same part on each rank, with its names.
    const places = page.shared.placesOf(slider.comm_id!);
    expect(places.map(({ rank, comm_id }) => [rank, comm_id])).toEqual([
      [0, 'a-slider'],
      [2, 'b-slider']
    ]);
    expect(places[1].rename({ focus: `IPY_MODEL_${id}`, all: [{ value: 2 }] })).toEqual({
      focus: 'IPY_MODEL_b',
      all: [{ value: 2 }]
    });
    expect(page.shared.placesOf('all-ranks-other')).toEqual([]);
  });

  it('follow the first rank, also to new parts', async () => {
    const page = new Page();
    page.shared.find(ROOTS);
    await page.shared.ready;
    page.log.length = 0;
    page.take(news('comm_open', 'a-text', { text: 'new' }));
    page.take(news('comm_msg', 'a', { children: ['IPY_MODEL_a-slider', 'IPY_MODEL_a-text'] }));
    page.take(news('comm_msg', 'b-slider', { value: 1 }, 2));
    await page.shared.ready;
    expect(page.log.map(({ kind, comm_id }) => [kind, comm_id])).toEqual([
      ['comm_open', 'all-ranks-a-text'],
      ['comm_msg', 'all-ranks-a']
    ]);
    expect(page.log[1].data!.state).toEqual({
      children: ['IPY_MODEL_all-ranks-a-slider', 'IPY_MODEL_all-ranks-a-text']
    });
  });

  it('are not one if they differ, and do not fold later', () => {
    const page = new Page();
    page.take(news('comm_msg', 'b-slider', { name: 'rank 2' }, 2));
    expect(page.shared.find(ROOTS)).toBeNull();
    vi.advanceTimersByTime(FIRST_SETTLE_MS);
    page.take(news('comm_msg', 'b-slider', { name: 'lr' }, 2));
    vi.advanceTimersByTime(2 * SETTLE_MS);
    expect(page.shared.find(ROOTS)).toBeNull();
    expect(page.numChanges).toBe(0);
  });

  it('become one when the messages of all ranks are there', () => {
    const page = new Page();
    page.take(news('comm_msg', 'a-slider', { value: 5 }));
    expect(page.shared.find(ROOTS)).toBeNull();
    // The page may be busy: it loads what draws them.
    vi.advanceTimersByTime(5 * SETTLE_MS);
    page.take(news('comm_msg', 'b-slider', { value: 5 }, 2));
    vi.advanceTimersByTime(SETTLE_MS / 2);
    expect(page.numChanges).toBe(1);
    expect(page.shared.find(ROOTS)).not.toBeNull();
  });

  it('become one when the last of them is opened late', () => {
    const page = new Page();
    page.take(news('comm_close', 'b-slider', {}, 2));
    expect(page.shared.find(ROOTS)).toBeNull();
    vi.advanceTimersByTime(5 * SETTLE_MS);
    page.states.open(news('comm_open', 'b-slider', { value: 1, name: 'lr' }, 2));
    page.shared.lookSoon();
    vi.advanceTimersByTime(SETTLE_MS / 2);
    expect(page.shared.find(ROOTS)).not.toBeNull();
  });

  it('are shown apart when a rank changes its own, not while a change is on its way', () => {
    const page = new Page();
    page.shared.find(ROOTS);
    page.busy.add(2);
    page.take(news('comm_msg', 'a-slider', { value: 2 }));
    vi.advanceTimersByTime(3 * SETTLE_MS);
    expect(page.shared.find(ROOTS)).not.toBeNull();
    page.take(news('comm_msg', 'b-slider', { value: 2 }, 2));
    page.busy.clear();
    vi.advanceTimersByTime(3 * SETTLE_MS);
    expect(page.shared.find(ROOTS)).not.toBeNull();

    page.take(news('comm_msg', 'b-slider', { value: 9 }, 2));
    vi.advanceTimersByTime(3 * SETTLE_MS);
    expect(page.shared.find(ROOTS)).toBeNull();
    expect(page.numChanges).toBe(1);
  });

  it.each([
    ['a rank is used alone', (page: Page) => page.shared.used('b-slider')],
    ['a rank dies', (page: Page) => page.shared.died(2)]
  ])('are shown apart at once when %s', (_, act) => {
    const page = new Page();
    page.shared.find(ROOTS);
    page.shared.used('another');
    page.shared.died(7);
    expect(page.numChanges).toBe(0);
    act(page);
    expect(page.numChanges).toBe(1);
    expect(page.shared.find(ROOTS)).toBeNull();
  });

  it('are each shown if a link in the page changes them, or they have binary data', () => {
    const linked = new Page();
    linked.take(
      news('comm_open', 'link', {
        _model_name: 'LinkModel',
        source: ['IPY_MODEL_a-slider', 'value'],
        target: ['IPY_MODEL_x', 'value']
      })
    );
    expect(linked.shared.find(ROOTS)).toBeNull();
    const binary = new Page();
    binary.take({ ...news('comm_msg', 'a-slider', { value: null }), buffers: ['AAAA'] });
    binary.take({ ...news('comm_msg', 'b-slider', { value: null }, 2), buffers: ['AAAA'] });
    expect(binary.shared.find(ROOTS)).toBeNull();
  });
});
