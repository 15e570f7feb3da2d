import { Signal } from '@lumino/signaling';
import { describe, expect, it } from 'vitest';
import type { ExecutionState } from '../../services/protocol';
import { SharedViews, WIDGET_MIME } from './sharedviews';

function view(rank: number, id: string) {
  const output = {
    output_type: 'display_data',
    metadata: {},
    data: { 'text/plain': 'IntSlider()', [WIDGET_MIME]: { model_id: id } }
  };
  return { key: `${rank}-${id}`, ranks: String(rank), output };
}

const TEXT = { key: 't', ranks: '0-1', output: { output_type: 'stream', name: 'stdout', text: 'x' } };

function views(find: (roots: ReadonlyMap<number, string>) => string | null) {
  const widgets = {
    findShared: (_: string, roots: ReadonlyMap<number, string>) => find(roots),
    sharedChanged: new Signal<never, string>({} as never)
  };
  return new SharedViews(widgets, () => undefined);
}

function shown(items: (ReturnType<typeof view> | typeof TEXT)[], state: ExecutionState = 'ok') {
  return { group: { id: 'g' }, ranks: '0-1', state, items };
}

describe('views of widgets', () => {
  it('of all ranks are one, the first of each rank with the first of others', () => {
    const asked: string[][] = [];
    const shared = views(roots => (asked.push([...roots.values()]), roots.get(0) === 'a' ? 's' : null));
    const items = [view(1, 'b'), TEXT, view(0, 'a'), view(0, 'c'), view(1, 'd'), view(1, 'e')];
    const found = shared.apply(shown(items));
    expect(asked).toEqual([
      ['a', 'b'],
      ['c', 'd']
    ]);
    expect(found.map(({ key, ranks }) => [key, ranks])).toEqual([
      ['shared-1-b', '0-1'],
      ['t', '0-1'],
      ['0-c', '0'],
      ['1-d', '1'],
      ['1-e', '1']
    ]);
    expect((found[0].output as ReturnType<typeof view>['output']).data[WIDGET_MIME]).toEqual({ model_id: 's' });
    expect(shared.apply(shown(items))[0].output).toBe(found[0].output);
  });

  it('are those of each rank while the cell runs, and if a rank has none', () => {
    const shared = views(() => 's');
    const both = [view(0, 'a'), view(1, 'b')];
    expect(shared.apply(shown(both, 'running'))).toEqual(both);
    expect(shared.apply(shown([both[0], TEXT]))).toEqual([both[0], TEXT]);
  });
});
