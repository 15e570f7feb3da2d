import { Signal } from '@lumino/signaling';
import { expect, it } from 'vitest';
import type { IGroup } from '../services/protocol';
import { GroupsModel, remedy } from './groups';

function group(name: string, started_at: number): IGroup {
  return { id: `id-${name}`, name, started_at } as IGroup;
}

it('keeps groups where they are when one is restarted', () => {
  const sender = {};
  const service = {
    connected: true,
    groupsChanged: new Signal<unknown, IGroup[]>(sender),
    connectionChanged: new Signal<unknown, boolean>(sender)
  };
  const model = new GroupsModel(service);
  const names = (): string[] => model.groups.map(({ name }) => name);
  service.groupsChanged.emit([group('run10', 1), group('eval', 3), group('run9', 2)]);
  expect(names()).toEqual(['eval', 'run9', 'run10']);
  // Restarted, its start is the newest; a new server may list it elsewhere too.
  service.groupsChanged.emit([group('eval', 4), group('run9', 2), group('run10', 1)]);
  expect(names()).toEqual(['eval', 'run9', 'run10']);
  model.dispose();
});

it('offers what puts a group right', () => {
  const of = (state: string, note: string | null): unknown => remedy({ state, note } as IGroup);
  expect(of('degraded', null)).toBe('replace');
  expect(of('ready', 'Ranks 0-1 destroyed the process group: collectives fail.')).toBe('reform');
  expect(of('ready', 'The process group is broken and could not be formed anew (too late). Restart the group.')).toBe('reform');
  expect(of('ready', 'The process group was formed anew; all variables are kept.')).toBe(null);
  expect(of('restarting', 'Rank 0 destroyed the process group: collectives fail.')).toBe(null);
});
