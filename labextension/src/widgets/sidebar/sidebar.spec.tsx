import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { PromiseDelegate } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import React from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Clock } from '../../model/format/clock';
import { DevicesModel } from '../../model/groups/devicemonitor';
import { GroupMonitors } from '../../model/groups/monitor';
import { DistError } from '../../services/errors';
import type { IGroup, ILauncherStatus } from '../../services/protocol';
import type { IService } from '../../services/service';
import { addBeginning } from '../starting/beginnings';
import type { ISidebarContext } from './context';
import { RanksSidebar } from './sidebar';

const ENVIRONMENT = {
  name: 'python3',
  display_name: 'Python 3',
  problem: null,
  torch_version: '2.9',
  accelerators: []
};
const REFUSED = new DistError({ code: 'bad_directory', message: 'There is no folder /no.', hint: '' });

/** What the server has not answered yet. */
let starts: PromiseDelegate<IGroup>[];
let environments: Promise<void>;
/** What the next questions for launchers, presets and more options are refused with. */
let refusals: DistError[];
let launchers: Partial<ILauncherStatus>[];
let known: PromiseDelegate<void>;
let connection: { connected: boolean; unopenedSeconds: number | null };
let clock: Clock;
let devices: DevicesModel;
let sidebar: RanksSidebar;

beforeEach(() => {
  starts = [];
  environments = Promise.resolve();
  refusals = [];
  launchers = [];
  known = new PromiseDelegate();
  connection = { connected: true, unopenedSeconds: null };
  const orRefused = async <T,>(answer: T): Promise<T> => {
    const refusal = refusals.pop();
    if (refusal) {
      throw refusal;
    }
    return answer;
  };
  const service = {
    get unopenedSeconds() {
      return connection.unopenedSeconds;
    },
    environments: async () => {
      await environments;
      return { environments: [ENVIRONMENT], default: 'python3' };
    },
    launchers: () => orRefused({ launchers }),
    presets: () => orRefused({ presets: [] }),
    startOptions: () => orRefused({ options: [] }),
    devices: () => new Promise(() => undefined),
    subscribe: () => ({ dispose: () => undefined }),
    start: () => {
      starts.push(new PromiseDelegate());
      return starts[starts.length - 1].promise;
    }
  } as unknown as IService;
  clock = new Clock();
  devices = new DevicesModel(service);
  const groups = {
    groups: [],
    get connected() {
      return connection.connected;
    },
    ready: known.promise,
    changed: new Signal({})
  };
  sidebar = new RanksSidebar({
    service,
    groups,
    devices,
    monitors: new GroupMonitors(service, clock),
    clock,
    sections: { items: [], changed: new Signal({}) },
    trans: nullTranslator.load('jupyterlab'),
    themeChanged: null,
    notebook: () => sidebar.notebook
  } as unknown as ISidebarContext);
  // What jsdom does not have.
  vi.stubGlobal('requestIdleCallback', (call: () => void) => setTimeout(call, 0));
  Element.prototype.scrollIntoView = () => undefined;
  Widget.attach(sidebar, document.body);
});

afterEach(() => {
  sidebar.dispose();
  devices.dispose();
  clock.dispose();
  vi.unstubAllGlobals();
  delete (Element.prototype as Partial<Element>).scrollIntoView;
  Notification.dismiss();
  document.body.innerHTML = '';
});

/** The name in the form. */
const field = () => sidebar.node.querySelector<HTMLInputElement>('form input');

function type(text: string): void {
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!.call(field(), text);
  field()!.dispatchEvent(new Event('input', { bubbles: true }));
}

/** Open the form for a notebook, and ask the server for a group of that name. */
async function submitted(notebook: string, name: string): Promise<{ answer: Promise<IGroup | null> }> {
  const answer = sidebar.openForm(notebook, { name });
  await expect.poll(() => field()?.value).toBe(name);
  const asked = starts.length + 1;
  sidebar.node.querySelector<HTMLButtonElement>('button[type=submit]')!.click();
  expect(starts.length).toBe(asked);
  return { answer };
}

function press(label: string): void {
  [...sidebar.node.querySelectorAll('button')].find(({ textContent }) => textContent === label)!.click();
}

const notices = () => Notification.manager.notifications.map(({ message }) => message);

describe('the answer to a form', () => {
  it('is not for the form that was opened after it was cancelled', async () => {
    const first = await submitted('a.ipynb', 'first');
    press('Cancel');
    expect(await first.answer).toBeNull();
    const second = await submitted('b.ipynb', 'second');
    starts[0].resolve({ name: 'first' } as IGroup);
    await starts[0].promise;
    starts[1].resolve({ name: 'second' } as IGroup);
    expect((await second.answer)?.name).toBe('second');
    expect(sidebar.form).toBeNull();
  });

  it('is for the notebook that waits for it, also if another form is open by then', async () => {
    const [first, refused] = [await submitted('a.ipynb', 'first'), await submitted('b.ipynb', 'refused')];
    const third = await submitted('c.ipynb', 'third');
    starts[0].resolve({ name: 'first' } as IGroup);
    starts[1].reject(REFUSED);
    expect((await first.answer)?.name).toBe('first');
    expect(await refused.answer).toBeNull();
    expect(notices()).toEqual([REFUSED.message]);
    expect(sidebar.notebook).toBe('c.ipynb');
    press('Cancel');
    expect(await third.answer).toBeNull();
  });
});

it('keeps what was typed, and shows why a start was refused while it was hidden', async () => {
  await submitted('a.ipynb', 'filled-in');
  type('typed');
  sidebar.hide();
  await expect.poll(() => field() === null).toBe(true);
  starts[0].reject(REFUSED);
  await expect.poll(notices).toEqual([REFUSED.message]);
  sidebar.show();
  await expect.poll(() => field()?.value).toBe('typed');
  expect(sidebar.node.querySelector('form')?.textContent).toContain(REFUSED.message);
});

it('names a connection that does not open, and does not take groups that are not known for none', async () => {
  connection = { connected: false, unopenedSeconds: 20 };
  sidebar.hide();
  sidebar.show();
  const text = () => sidebar.node.textContent;
  await expect.poll(text).toContain('Asking the server for its groups\u2026');
  await expect.poll(text).toContain('its WebSocket did not open within 20 s');
  expect(text()).not.toContain('No group is running');
  known.resolve();
  await expect.poll(text).toContain('No group is running');
});

describe('the choices of the form', () => {
  const LOST = new DistError({ code: 'server_unreachable', message: 'The server did not answer.', hint: '' });
  const [MACHINE, SLURM] = ['This machine', 'Slurm'];
  const LOCAL = { name: 'local', label: MACHINE, usable: true, text: 'Here.', options: [] };
  const failures = () => [
    ...sidebar.node.querySelectorAll('.jpd-NotAnswered .jpd-Error > p:first-child, .jpd-NotAnswered-line')
  ];
  const texts = (selector: string) => [...sidebar.node.querySelectorAll(selector)].map(node => node.textContent);

  it('that could not be listed are no empty list: the failure is shown until the server has answered', async () => {
    const failed = new PromiseDelegate<void>();
    environments = failed.promise;
    refusals = [LOST, LOST, LOST];
    launchers = [LOCAL];
    void sidebar.openForm('a.ipynb');
    await expect.poll(() => texts('.jpd-Sidebar-quiet')).toContain('Looking for Python environments\u2026');
    failed.reject(LOST);
    await expect.poll(() => failures().length).toBe(1);
    expect(failures()[0].textContent).toBe('The Python environments could not be listed. The server did not answer.');
    environments = Promise.resolve();
    press('Try again');
    await expect.poll(() => failures().length).toBe(3); // launchers, presets and more options
    // All of them are asked for again by themselves.
    await expect.poll(() => failures().length).toBe(0);
    expect(texts('option')).toContain(MACHINE);
  });

  it('have rows of parts: the group that was started gets what was chosen there', async () => {
    const begun: unknown[] = [];
    addBeginning({
      id: 'kept',
      Row: ({ chosen, choose }) => (
        <button type="button" onClick={() => choose('kept', { numRanks: 3, name: 'of-part' })}>
          {`chosen: ${String(chosen)}`}
        </button>
      ),
      find: async () => null,
      begin: async (group, chosen) => void begun.push(group.name, chosen)
    });
    void sidebar.openForm('a.ipynb');
    await expect.poll(() => field()).toBeTruthy();
    type('');
    press('chosen: undefined');
    await expect.poll(() => texts('form button')).toContain('chosen: kept');
    expect(field()!.value).toBe('of-part');
    expect(sidebar.form!.fields!.ranks).toBe('3');
    sidebar.node.querySelector<HTMLButtonElement>('button[type=submit]')!.click();
    starts[0].resolve({ name: 'of-part' } as IGroup);
    await expect.poll(() => begun).toEqual(['of-part', 'kept']);
  });

  it('that cannot be used here are disabled, with the reason', async () => {
    launchers = [LOCAL, { name: 'slurm', label: SLURM, usable: false, text: 'There is no sbatch.', options: [] }];
    void sidebar.openForm('a.ipynb');
    await expect.poll(() => texts('option:disabled')).toEqual(['Slurm (not usable)']);
    expect(texts('.jpd-StartForm-reasons li')).toEqual(['Slurm: There is no sbatch.']);
  });
});

describe('the focus', () => {
  const other = () => document.body.appendChild(document.createElement('input'));

  it('is taken from what the user opened the form with, once', async () => {
    const button = other();
    button.focus();
    void sidebar.openForm('a.ipynb');
    await expect.poll(() => field() !== null && document.activeElement === field()).toBe(true);
    button.focus();
    sidebar.hide();
    await expect.poll(() => field() === null).toBe(true);
    sidebar.show();
    await expect.poll(() => field() !== null).toBe(true);
    expect(document.activeElement === button).toBe(true);
  });

  it('is not taken from where the user went while environments were looked for', async () => {
    const looked = new PromiseDelegate<void>();
    environments = looked.promise;
    void sidebar.openForm('a.ipynb');
    const cell = other();
    cell.focus();
    looked.resolve();
    await expect.poll(() => field() !== null).toBe(true);
    expect(document.activeElement === cell).toBe(true);
  });
});
