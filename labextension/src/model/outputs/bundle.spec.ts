import { describe, expect, it } from 'vitest';
import type { IExecution, IViewItem } from '../../services/protocol';
import vectors from '../../../../tests/vectors/bundles.json';
import { fallbackText, makeBundle } from './bundle';

const group = { id: 'g-1', name: 'train', world_size: 2 };

const execution: IExecution = {
  id: 'e-1',
  group: 'g-1',
  ranks: '0-1',
  state: 'ok',
  cell_id: 'c',
  notebook: 'a.ipynb',
  owner: null,
  execution_count: 1,
  queued_at: 1,
  started_at: 1,
  ended_at: 2,
  statuses: [{ ranks: '0-1', status: 'ok', seconds: 1 }],
  rank_seconds: { '0': 1, '1': 1 },
  silent: false,
  error: null
};

interface IBundleVector {
  group: typeof group;
  execution: IExecution;
  items: IViewItem[];
}

function said(id: number, ranks: string, text: string): IViewItem {
  const output = { output_type: 'stream', name: 'stdout', text };
  return { id, seq: id, ranks, output };
}

describe('a bundle', () => {
  it.each(vectors)('is the same in Python: $name', vector => {
    const { group, execution, items } = vector as unknown as IBundleVector;
    const made = makeBundle(group, execution, items);
    expect(made).toEqual(vector.bundle);
    expect(fallbackText(made)).toBe(vector.text);
  });

  it('has a text that names the ranks when they change', () => {
    const items = [said(1, '0-1', 'both\n'), said(2, '0-1', '\x1b[31mred\x1b[0m\n'), said(3, '1', 'one\n')];
    expect(fallbackText(makeBundle(group, execution, items))).toBe('[ranks 0-1]\nboth\nred\n[rank 1]\none');
  });

  it('has a text that is bounded, with its end', () => {
    const long = 'x'.repeat(80) + '\n';
    const items = [said(1, '0', long.repeat(5000)), said(2, '1', 'the end\n')];
    const text = fallbackText(makeBundle(group, execution, items));
    expect(text.length).toBeLessThan(17000);
    expect(text).toContain('the end');
  });

  it('says why there is nothing', () => {
    const error = { code: 'lost', message: 'Gone.', hint: '' };
    const lost = { ...execution, state: 'lost' as const, error };
    expect(fallbackText(makeBundle(group, lost, []))).toBe('[lost] Gone.');
    expect(fallbackText(makeBundle(group, execution, []))).toBe('[ranks 0-1] ok');
  });
});
