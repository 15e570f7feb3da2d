/** The fields of the form for a new group, each with its problem below. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import React from 'react';
import { formatBytes } from '../../../model/format/quantities';
import {
  backendsOf,
  IStartForm,
  isOnNodes,
  IStartWorld,
  knownAccelerators,
  MAX_RANKS,
  offeredDevices,
  readCounts,
  StartProblems
} from '../../../model/groups/startvalues';
import type { IEnvironment } from '../../../services/protocol';
import { inWords } from '../../../services/words';
import { useSidebar } from '../context';
import { NumberRow, Problem, Row } from './formrow';

export interface IFieldProps {
  readonly form: IStartForm;
  readonly world: IStartWorld;
  readonly found: StartProblems;
  readonly set: (changes: Partial<IStartForm>) => void;
}

export function NameField({ form, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <Row label={trans.__('Name')} problem={found.name}>
      {id => (
        <input
          {...id}
          className="jp-mod-styled"
          value={form.name}
          placeholder={trans.__('chosen automatically')}
          spellCheck={false}
          onChange={event => set({ name: event.target.value })}
        />
      )}
    </Row>
  );
}

export function EnvironmentField({ form, world, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  const chosen = world.environments.find(e => e.name === form.environment);
  return (
    <Row
      label={trans.__('Environment')}
      problem={found.environment}
      words={chosen && problemOf(trans, chosen)}
      note={whereabouts(trans, chosen)}
      unusable={world.environments.map(one => ({ label: one.display_name, reason: problemOf(trans, one) }))}
    >
      {id => (
        <HTMLSelect {...id} value={form.environment} onChange={event => set({ environment: event.target.value })}>
          {!chosen && form.environment && (
            <option value={form.environment}>{trans.__('%1 (not on this server)', form.environment)}</option>
          )}
          {world.environments.map(environment => (
            <option
              key={environment.name}
              value={environment.name}
              disabled={environment.problem !== null}
              title={problemOf(trans, environment) ?? environment.python}
            >
              {environmentLabel(trans, environment)}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Row>
  );
}

export function AcceleratorField({ form, world, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  const choices = [
    {
      name: 'auto',
      label: isOnNodes(form) ? trans.__('automatic: GPUs if you ask for them below, else CPU') : trans.__('automatic')
    },
    ...knownAccelerators(world),
    { name: 'cpu', label: trans.__('CPU') }
  ];
  return (
    <Row label={trans.__('Accelerator')} problem={found.accelerator}>
      {id => (
        <HTMLSelect {...id} value={form.accelerator} onChange={event => set({ accelerator: event.target.value })}>
          {choices.map(({ name, label }) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Row>
  );
}

export function DevicesField({ form, world, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  const toggle = (index: number) =>
    set({
      devices: form.devices.includes(index) ? form.devices.filter(i => i !== index) : [...form.devices, index]
    });
  return (
    <fieldset className="jpd-StartForm-devices">
      <legend>{trans.__('Devices')}</legend>
      {offeredDevices(form, world).map(device => (
        <label key={device.index} className="jpd-StartForm-device">
          <input type="checkbox" checked={form.devices.includes(device.index)} onChange={() => toggle(device.index)} />
          <span className="jpd-Device-index">{device.index}</span>
          <span className="jpd-Device-name">{device.name}</span>
          <span className="jpd-Device-number">
            {trans.__('%1 free', formatBytes(freeBytes(device.memory_used_bytes, device.memory_total_bytes)))}
          </span>
        </label>
      ))}
      <Problem problem={found.devices} />
    </fieldset>
  );
}

export function RanksField({ form, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  if (isOnNodes(form)) {
    return <NodeRanksField found={found} form={form} set={set} />;
  }
  return (
    <NumberRow
      label={trans.__('Ranks')}
      problem={found.ranks}
      max={MAX_RANKS}
      value={form.ranks}
      change={ranks => set({ ranks })}
    />
  );
}

/** One number for all nodes, or one for each: as many nodes as numbers. */
function NodeRanksField({ form, found, set }: Pick<IFieldProps, 'form' | 'found' | 'set'>): React.ReactElement {
  const { trans } = useSidebar();
  const change = (ranks: string): void => {
    const { length } = readCounts(ranks);
    set(length > 1 ? { ranks, nodes: String(length) } : { ranks });
  };
  return (
    <Row label={trans.__('Ranks per node')} problem={found.ranks}>
      {id => (
        <input
          {...id}
          className="jp-mod-styled"
          value={form.ranks}
          title={trans.__('One number for all nodes, or one for each: 4, 8')}
          spellCheck={false}
          onChange={event => change(event.target.value)}
        />
      )}
    </Row>
  );
}

export function BackendField({ form, world, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <Row label={trans.__('Backend')} problem={found.backend}>
      {id => (
        <HTMLSelect {...id} value={form.backend} onChange={event => set({ backend: event.target.value })}>
          <option value="auto">{trans.__('automatic')}</option>
          {backendsOf(form, world).map(backend => (
            <option key={backend} value={backend}>
              {backend}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Row>
  );
}

export function DirectoryField({ form, found, set }: IFieldProps): React.ReactElement {
  const { notebook, trans } = useSidebar();
  const path = notebook();
  const folder = path === null ? '' : path.split('/').slice(0, -1).join('/');
  return (
    <Row label={trans.__('Folder')} problem={found.cwd}>
      {id => (
        <input
          {...id}
          className="jp-mod-styled"
          value={form.cwd}
          placeholder={folder || trans.__("the server's folder")}
          spellCheck={false}
          onChange={event => set({ cwd: event.target.value })}
        />
      )}
    </Row>
  );
}

export function VariablesField({ form, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <Row label={trans.__('Variables')} problem={found.env}>
      {id => (
        <textarea
          {...id}
          className="jp-mod-styled"
          rows={2}
          value={form.env}
          placeholder={trans.__('NAME=value, one in a line; saved in the notebook')}
          spellCheck={false}
          onChange={event => set({ env: event.target.value })}
        />
      )}
    </Row>
  );
}

function problemOf(trans: TranslationBundle, { problem, problem_words }: IEnvironment): string | null {
  return problem && inWords(trans, problem, problem_words);
}

function environmentLabel(trans: TranslationBundle, environment: IEnvironment): string {
  if (environment.problem !== null) {
    return trans.__('%1 (not usable)', environment.display_name);
  }
  return environment.display_name;
}

function freeBytes(used: number | null, total: number | null): number | null {
  return used === null || total === null ? null : total - used;
}

function whereabouts(trans: TranslationBundle, environment: IEnvironment | undefined): string | undefined {
  return environment?.torch_version
    ? trans.__('torch %1, %2', environment.torch_version, environment.python)
    : environment?.python;
}
