import { describe, expect, it } from 'vitest';
import type { IMemorySample } from '../../services/protocol';
import { MemoryModel } from './memorymodel';

function sample(at: number, values: number[], allocated = false): IMemorySample {
  return {
    at,
    ranks: values.map((value, rank) => ({
      rank,
      resident_bytes: value,
      allocated_bytes: allocated ? value : null,
      reserved_bytes: null,
      peak_bytes: null,
      device_used_bytes: null,
      cpu_percent: 0
    }))
  };
}

describe('MemoryModel', () => {
  it('draws a line per rank of a small group', () => {
    const model = new MemoryModel();
    model.add(sample(1, [10, 20]), sample(2, [11]));
    expect(model.plot(2)).toEqual({
      times: [1, 2],
      series: [
        [10, 11],
        [20, null]
      ],
      ranks: [0, 1]
    });
  });

  it('draws a band of a large one', () => {
    const model = new MemoryModel();
    model.add(sample(1, [9, 1, 2, 3, 4, 5, 6, 7, 8]));
    expect(model.plot(9)).toEqual({ times: [1], series: [[1], [5], [9]], ranks: null });
  });

  it('takes the past after the present, and each sample once', () => {
    const model = new MemoryModel();
    model.add(sample(5, [50]));
    model.add(sample(3, [30]), sample(4, [40]), sample(5, [50]));
    expect(model.plot(1).times).toEqual([3, 4, 5]);
    expect(model.latest(0)?.resident_bytes).toBe(50);
    expect(model.history(0, 'resident_bytes', 2)).toEqual([40, 50]);
  });

  it('is bounded', () => {
    const model = new MemoryModel(3);
    [1, 2, 3, 4].forEach(at => model.add(sample(at, [at])));
    expect(model.plot(1).times).toEqual([2, 3, 4]);
  });

  it('prefers what the allocator says', () => {
    const model = new MemoryModel();
    model.add(sample(1, [1]));
    expect(model.metric).toBe('resident_bytes');
    model.add(sample(2, [1], true));
    expect(model.metric).toBe('allocated_bytes');
  });
});
