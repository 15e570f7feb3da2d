import { describe, expect, it } from 'vitest';
import type { IHeldMemory, IMemoryHolder } from '../../../services/protocol';
import { heldAlike } from './held';

const holder = (name: string, where: IMemoryHolder['where']): IMemoryHolder => ({
  name,
  where,
  also: [],
  type: 'Tensor',
  bytes: 4,
  frees_bytes: 4,
  parts: {}
});

const held = (rank: number, changes: Partial<IHeldMemory> = {}): IHeldMemory => ({
  rank,
  bytes: 8,
  devices: { cpu: 8 },
  resident_bytes: 300 + rank,
  allocated_bytes: null,
  reserved_bytes: null,
  peak_bytes: null,
  holders: [holder('x', 'variable'), holder('Out[1]', 'result')],
  left_out: 0,
  is_whole: true,
  ...changes
});

describe('heldAlike', () => {
  it('puts ranks together that hold as much, although their processes differ', () => {
    const [one, ...more] = heldAlike([held(0), held(1), held(2)]);
    expect(more).toEqual([]);
    expect(one).toMatchObject({ ranks: '0-2', bytes: 8, residentBytes: 302, allocatedBytes: null });
    expect(one.others.map(({ name }) => name)).toEqual(['Out[1]']);
  });

  it('puts ranks together whose numbers are written alike', () => {
    const found = heldAlike([held(0, { bytes: 24_850 }), held(1, { bytes: 24_860 }), held(2, { bytes: 24_990 })]);
    expect(found.map(({ ranks, bytes }) => [ranks, bytes])).toEqual([
      ['2', 24_990],
      ['0-1', 24_860]
    ]);
  });

  it('shows ranks that hold more, or by something else, first and apart', () => {
    const other = held(2, { holders: [holder('y in step()', 'traceback')] });
    const found = heldAlike([held(0), held(1, { bytes: 80, allocated_bytes: 5, reserved_bytes: 6 }), other]);
    expect(found.map(({ ranks }) => ranks)).toEqual(['1', '0', '2']);
    expect(found[0]).toMatchObject({ allocatedBytes: 5, reservedBytes: 6 });
  });
});
