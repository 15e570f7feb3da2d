import { afterEach, describe, expect, it, vi } from 'vitest';
import { applyAwarenessUpdate, Awareness, encodeAwarenessUpdate, removeAwarenessStates } from 'y-protocols/awareness';
import * as Y from 'yjs';
import { Authors, SETTLE_MS } from './authors';

/** Pages on one document: what one says, all hear. */
function pages(count: number): Awareness[] {
  const all = [...Array(count).keys()].map(i => {
    const doc = new Y.Doc();
    doc.clientID = i + 1;
    return new Awareness(doc);
  });
  for (const one of all) {
    one.on('update', ({ added, updated, removed }: Record<string, number[]>, origin: unknown) => {
      if (origin !== 'wire') {
        const update = encodeAwarenessUpdate(one, [...added, ...updated, ...removed]);
        all.filter(other => other !== one).forEach(other => applyAwarenessUpdate(other, update, 'wire'));
      }
    });
  }
  return all;
}

const authorsOf = (authors: Authors[], execution: string): boolean[] => authors.map(each => each.isAuthor(execution));

describe('Authors', () => {
  const states: Awareness[] = [];
  afterEach(() => states.splice(0).forEach(state => state.destroy()));

  const open = (count: number): Authors[] => {
    states.push(...pages(count));
    return states.map(awareness => new Authors({ awareness }));
  };

  it('is this page where there is no other', () => {
    const [alone] = open(1);
    expect(alone.isAuthor('x')).toBe(true);
    alone.claim('x', 'cell');
    expect(alone.isAuthor('x')).toBe(true);
  });

  it('waits for what others say before it takes itself for alone, where the notebook is shared', async () => {
    vi.useFakeTimers();
    const [state] = pages(1);
    states.push(state);
    let settled = '';
    const all = [false, true].map(isShared => new Authors({ awareness: state }, isShared));
    for (const authors of all) {
      void authors.settled.then(() => (settled += authors.isShared ? 'shared' : 'alone '));
    }
    await vi.advanceTimersByTimeAsync(SETTLE_MS - 1);
    expect(settled).toBe('alone ');
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toBe('alone shared');
    vi.useRealTimers();
  });

  it('is nobody once the author has written the end, also for a page that has not heard the end yet', () => {
    const all = open(3);
    all[1].claim('x', 'cell');
    all[1].claim('y', 'other');
    all[1].release('x');
    expect(authorsOf(all, 'x')).toEqual([false, false, false]);
    expect(authorsOf(all, 'y')).toEqual([false, true, false]);
    // It closes the notebook while a cell runs: another page continues.
    all[1].dispose();
    expect(authorsOf([all[0], all[2]], 'y')).toEqual([true, false]);
    expect(authorsOf([all[0], all[2]], 'x')).toEqual([false, false]);
  });

  it('of what widgets print after the end is the page that wrote it, as long as that is open and shows it', () => {
    const all = open(3);
    const late = (): number[] => [0, 1, 2].filter(page => !all[page].isDisposed && all[page].isLateAuthor('x'));
    all[1].claim('x', 'cell');
    all[1].release('x');
    all.forEach(each => each.keep('x'));
    expect(late()).toEqual([1]);
    expect(authorsOf(all, 'x')).toEqual([false, false, false]);
    expect(all[0].others).toEqual({});
    all[1].drop('x'); // the cell is another one there
    expect(late()).toEqual([0]);
    all[1].keep('x');
    expect(late()).toEqual([1]);
    all[1].dispose();
    all[1].drop('x');
    expect(late()).toEqual([0]);
  });

  it('is the page that submitted the cell, and no other', () => {
    const all = open(3);
    all[1].claim('x', 'cell');
    expect(authorsOf(all, 'x')).toEqual([false, true, false]);
    expect(all[0].others).toEqual({ x: 'cell' });
    expect(all[1].others).toEqual({});
    all[2].claim('y', 'other');
    expect(authorsOf(all, 'y')).toEqual([false, false, true]);
    expect(authorsOf(all, 'x')).toEqual([false, true, false]);
  });

  it('is the first of those that are left when that page goes', () => {
    const all = open(3);
    all[2].claim('x', 'cell');
    let heard = 0;
    all[0].changed.connect(() => heard++);
    removeAwarenessStates(states[2], [states[2].clientID], 'closed');
    expect(authorsOf(all.slice(0, 2), 'x')).toEqual([true, false]);
    expect(heard).toBe(1);
  });

  it('is one page when two have submitted, whatever each hears first', () => {
    const all = open(2);
    all[1].claim('x', 'cell');
    all[0].claim('x', 'cell');
    expect(authorsOf(all, 'x')).toEqual([true, false]);
    all[0].release('x');
    expect(authorsOf(all, 'x')).toEqual([false, true]);
  });

  it('is no page without the extension', () => {
    const all = open(2);
    all[0].dispose();
    expect(all[1].isAuthor('x')).toBe(true);
  });
});
