import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { IGroup } from '../../services/protocol';
import { GroupsModel, noteLines, remedy } from './groups';
import { addGroupNews } from '../format/states';

function group(name: string, started_at: number): IGroup {
  return { id: `id-${name}`, name, started_at, ranks: [] as unknown } as IGroup;
}

/** The groups of a server, which sends what is emitted. */
function followed() {
  const sender = {};
  const service = {
    connected: true,
    groupsChanged: new Signal<unknown, IGroup[]>(sender),
    connectionChanged: new Signal<unknown, boolean>(sender)
  };
  return { service, model: new GroupsModel(service) };
}

it('keeps groups where they are when one is restarted', () => {
  const { service, model } = followed();
  const names = (): string[] => model.groups.map(({ name }) => name);
  service.groupsChanged.emit([group('run10', 1), group('eval', 3), group('run9', 2)]);
  expect(names()).toEqual(['eval', 'run9', 'run10']);
  // Restarted, its start is the newest; a new server may list it elsewhere too.
  service.groupsChanged.emit([group('eval', 4), group('run9', 2), group('run10', 1)]);
  expect(names()).toEqual(['eval', 'run9', 'run10']);
  model.dispose();
});

it('has the sentences of parts once', () => {
  addGroupNews({ lines: ({ name }) => (name === 'told' ? ['8 MiB stay.', 'A graph stays.'] : []) });
  const of = (name: string, note: string | null): string[] => noteLines({ name, note } as unknown as IGroup);
  expect(of('told', 'Moved in 0.1 s. 8 MiB stay.')).toEqual(['Moved in 0.1 s. 8 MiB stay.', 'A graph stays.']);
  expect(of('told', null)).toEqual(['8 MiB stay.', 'A graph stays.']);
  expect(of('other', 'A note.')).toEqual(['A note.']);
});

it('offers what puts a group right', () => {
  const of = (state: string, ...ranks: string[]): unknown => {
    const [states, groups] = [ranks.map(rank => rank.split(' ')[0]), ranks.map(rank => rank.split(' ')[1])];
    return remedy({ state, ranks: states.map((state, i) => ({ state, process_group: groups[i] })) } as IGroup);
  };
  expect(of('degraded', 'idle ok', 'dead ok')).toBe('replace');
  expect(of('ready', 'idle ok', 'idle none')).toBe('reform');
  expect(of('ready', 'idle broken', 'idle broken')).toBe('reform');
  expect(of('ready', 'idle broken', 'idle lost')).toBe('replace');
  expect(of('ready', 'idle lost', 'busy ok')).toBe(null);
  expect(of('ready', 'idle ok', 'idle ok')).toBe(null);
  expect(of('ready', 'idle broken', 'busy ok')).toBe(null);
  expect(of('ready', 'joining broken', 'joining broken')).toBe(null);
  expect(of('parked', 'idle none', 'idle none')).toBe(null); // a part has it
  expect(of('dead', 'dead ok')).toBeNull();
  const cancelled = { state: 'dead', ranks: [], allocation: { state: 'ended' } } as unknown as IGroup;
  expect(remedy(cancelled)).toBe('startAgain');
  expect(of('restarting', 'idle none', 'idle none')).toBe(null);
});

describe('the clock of the server', () => {
  const NOW = 1_700_000_000;
  beforeEach(() => void vi.useFakeTimers({ now: NOW * 1000 }));
  afterEach(() => void vi.useRealTimers());

  /** What the clock says, against the browser's, after messages in which the only rank of a group has changed its state at these times. */
  function offsets(...messages: (number | 'reconnected')[]): number[] {
    const { service, model } = followed();
    const offsets = messages.map(at => {
      if (at === 'reconnected') {
        service.connectionChanged.emit(true);
      } else {
        service.groupsChanged.emit([{ ...group('a', 0), ranks: [{ rank: 0, state_at: NOW + at }] as never }]);
      }
      return model.clock.now() - NOW;
    });
    model.dispose();
    return offsets;
  }

  it('is read from what happens while the page is connected', () => {
    // The browser's is five minutes ahead.
    expect(offsets(-4000, -300.5, -300, -300)).toEqual([0, -300.5, -300, -300]);
  });

  it('is not read from what happened before, other than that it is not earlier', () => {
    expect(offsets(-4000, 'reconnected', -2000, -2000)).toEqual([0, 0, 0, 0]);
    expect(offsets(240, 'reconnected', 250)).toEqual([240, 240, 250]);
  });
});
