import { Signal } from '@lumino/signaling';
import { expect, it } from 'vitest';
import type { IGroup } from '../../services/protocol';
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
  const of = (state: string, ...ranks: string[]): unknown => {
    const [states, groups] = [ranks.map(rank => rank.split(' ')[0]), ranks.map(rank => rank.split(' ')[1])];
    return remedy({ state, ranks: states.map((state, i) => ({ state, process_group: groups[i] })) } as IGroup);
  };
  expect(of('degraded', 'idle ok', 'dead ok')).toBe('replace');
  expect(of('ready', 'idle ok', 'idle none')).toBe('reform');
  expect(of('ready', 'idle broken', 'idle broken')).toBe('reform');
  expect(of('ready', 'idle ok', 'idle ok')).toBe(null);
  expect(of('ready', 'idle broken', 'busy ok')).toBe(null);
  expect(of('ready', 'joining broken', 'joining broken')).toBe(null);
  expect(of('restarting', 'idle none', 'idle none')).toBe(null);
});
