import { describe, expect, it } from 'vitest';
import type { IShown, IShownItem } from '../items/shown';
import { MAX_STANDING_OUT, standingOut } from './standingout';

const item = (ranks: string): IShownItem => ({ key: ranks, ranks }) as IShownItem;

function shown(size: number, items: IShownItem[] = [], failed: number[] = []): IShown {
  const perRank = Array.from({ length: size }, (_, rank) => ({
    rank,
    status: failed.includes(rank) ? ('error' as const) : ('ok' as const),
    seconds: 0.1
  }));
  return { ranks: `0-${size - 1}`, perRank, items } as unknown as IShown;
}

describe('ranks that stand out', () => {
  it('are none where all are alike', () => {
    expect(standingOut(shown(1024, [item('0-1023')]))).toEqual([]);
  });

  it('ask first, then failed, then have printed something else', () => {
    const items = [item('0-6,8-1023'), item('7'), item('900')];
    expect(standingOut(shown(1024, items, [500]), ['1000'])).toEqual([1000, 500, 7, 900]);
  });

  it('are none where each rank prints something else', () => {
    expect(
      standingOut(
        shown(
          1024,
          Array.from({ length: 1024 }, (_, rank) => item(String(rank)))
        )
      )
    ).toEqual([]);
  });

  it('are at most as many as there is room for', () => {
    const failed = Array.from({ length: 100 }, (_, i) => i);
    expect(standingOut(shown(1024, [], failed))).toEqual(failed.slice(0, MAX_STANDING_OUT));
  });

  it('are ranks of the execution only', () => {
    expect(standingOut(shown(100, [item('5')]), ['5000'])).toEqual([5]);
  });
});
