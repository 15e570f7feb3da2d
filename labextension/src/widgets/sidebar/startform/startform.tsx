/** The form for a new group. */
import { Button } from '@jupyterlab/ui-components';
import React, { useEffect, useReducer, useRef, useState } from 'react';
import {
  acceleratorOf,
  defaultForm,
  filledForm,
  IStartForm,
  isOnNodes,
  IStartWorld,
  problems,
  sized,
  startRequest
} from '../../../model/groups/startvalues';
import type { IEnvironment, ILaunchers, IPresets, IStartOptionRows, IStartRequest } from '../../../services/protocol';
import { ErrorNote, NotAnswered } from '../../base/errornote';
import { useSignal, useAsked } from '../../base/hooks';
import { ISidebarContext, useSidebar } from '../context';
import type { OpenForm } from './openform';
import { beginnings, type IBeginningRowProps } from '../../starting/beginnings';
import {
  AcceleratorField,
  BackendField,
  DevicesField,
  DirectoryField,
  EnvironmentField,
  type IFieldProps,
  NameField,
  RanksField,
  VariablesField
} from './startfields';
import { MoreFields } from './morefields';
import { LauncherField, NodesField, OptionFields } from './nodefields';
import { Folded } from './formrow';
import { PresetField } from './presetfield';

export interface IStartFormProps {
  readonly open: OpenForm;
  /** The initial number of CPU ranks. */
  readonly ranks: number;
  readonly onClose: () => void;
  readonly onSubmit: (request: IStartRequest) => void;
}

export function StartForm(props: IStartFormProps): React.ReactElement {
  const { service, trans } = useSidebar();
  const { answer, error, again } = useAsked(() => service.environments());
  if (answer) {
    return <Fields {...props} environments={answer.environments} preferred={answer.default} />;
  }
  return (
    <div className="jpd-StartForm">
      {error ? (
        <NotAnswered what={trans.__('The Python environments could not be listed.')} error={error} again={again} />
      ) : (
        <p className="jpd-Sidebar-quiet">{trans.__('Looking for Python environments\u2026')}</p>
      )}
      <div className="jpd-StartForm-buttons">
        <CancelButton onClose={props.onClose} />
      </div>
    </div>
  );
}

function CancelButton({ onClose }: Pick<IStartFormProps, 'onClose'>): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <Button type="button" className="jp-mod-styled jp-mod-reject" minimal={false} onClick={onClose}>
      {trans.__('Cancel')}
    </Button>
  );
}

interface IFieldsProps extends IStartFormProps {
  readonly environments: readonly IEnvironment[];
  readonly preferred: string | null;
}

function Fields({ environments, preferred, ranks, open, onClose, onSubmit }: IFieldsProps): React.ReactElement {
  const sidebar = useSidebar();
  const { trans } = sidebar;
  const launchers = useAsked(() => sidebar.service.launchers());
  const presets = useAsked(() => sidebar.service.presets());
  const options = useAsked(() => sidebar.service.startOptions());
  const world = useWorld(sidebar, environments, launchers.answer, presets.answer, options.answer);
  const [form, set] = useFields(open, sidebar.devices.devices !== null, () => defaultForm(world, preferred, ranks));
  const node = useShown(open);
  useSignal(open.changed);
  const field = { form, world, set, found: problems(form, world) };
  const isBad = Object.keys(field.found).length > 0;
  return (
    <form
      ref={node}
      className="jpd-StartForm"
      aria-label={trans.__('Start a group of ranks')}
      noValidate
      onSubmit={event => {
        event.preventDefault();
        if (!isBad && !open.isPending) {
          onSubmit(startRequest(form, world, sidebar.notebook()));
        }
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          onClose();
        }
      }}
    >
      <PresetField {...field} asked={presets} initial={defaultForm(world, preferred, ranks)} />
      <NameField {...field} />
      <Beginnings open={open} form={form} set={set} />
      <EnvironmentField {...field} />
      <LauncherField {...field} asked={launchers} />
      {isOnNodes(form) && <NodesField {...field} />}
      <AcceleratorField {...field} />
      {acceleratorOf(form, world) && !isOnNodes(form) ? <DevicesField {...field} /> : <RanksField {...field} />}
      {isOnNodes(form) && <OptionFields {...field} />}
      <RareFields {...field} />
      <MoreFields {...field} asked={options} />
      {open.error && <ErrorNote error={open.error} />}
      <div className="jpd-StartForm-buttons">
        <CancelButton onClose={onClose} />
        <Button
          type="submit"
          className="jp-mod-styled jp-mod-accept"
          minimal={false}
          disabled={isBad || open.isPending}
        >
          {open.isPending ? trans.__('Starting\u2026') : trans.__('Start')}
        </Button>
      </div>
    </form>
  );
}

function RareFields(props: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <Folded title={trans.__('Backend, folder and variables')} isSet={props.form.env !== ''}>
      <BackendField {...props} />
      <DirectoryField {...props} />
      <VariablesField {...props} />
    </Folded>
  );
}

/**
 * What is typed: as it was before the sidebar was hidden, or as the form is filled in. Devices that are read only after
 * that are chosen then.
 */
function useFields(
  open: OpenForm,
  knowsDevices: boolean,
  initial: () => IStartForm
): [IStartForm, (changes: Partial<IStartForm>) => void] {
  const [form, setForm] = useState<IStartForm>(() => (open.fields ??= filledForm(initial(), open.wanted)));
  const set = (changes: Partial<IStartForm>) => {
    open.fields = { ...open.fields!, ...changes };
    setForm(open.fields);
  };
  const wasKnown = useRef(knowsDevices);
  useEffect(() => {
    if (knowsDevices && !wasKnown.current) {
      wasKnown.current = true;
      set({ devices: filledForm(initial(), open.wanted).devices });
    }
  });
  return [form, set];
}

interface IBeginningsProps {
  readonly open: OpenForm;
  readonly form: IStartForm;
  readonly set: (changes: Partial<IStartForm>) => void;
}

/** The rows of what the group can begin with. */
function Beginnings({ open, form, set }: IBeginningsProps): React.ReactElement {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const chooseOf =
    (id: string): IBeginningRowProps['choose'] =>
    (chosen, like) => {
      open.chosen.set(id, chosen);
      again();
      if (like) {
        set({ ...sized(form, like.numRanks), name: form.name || like.name });
      }
    };
  return (
    <>
      {beginnings().map(({ id, Row }) => (
        <Row key={id} chosen={open.chosen.get(id)} choose={chooseOf(id)} />
      ))}
    </>
  );
}

/** The form, in view and ready to type in. */
function useShown(open: OpenForm): React.RefObject<HTMLFormElement> {
  const node = useRef<HTMLFormElement>(null);
  useEffect(() => {
    node.current?.scrollIntoView({ block: 'nearest' });
    const field = node.current?.querySelector('input');
    if (field && open.takesFocus(field)) {
      field.focus();
      field.select();
    }
  }, [open]);
  return node;
}

/** What the form is checked against. Asking an engine can take seconds, and the form does not wait. */
function useWorld(
  sidebar: ISidebarContext,
  environments: readonly IEnvironment[],
  launchers: ILaunchers | null,
  presets: IPresets | null,
  options: IStartOptionRows | null
): IStartWorld {
  useSignal(sidebar.devices.changed);
  useSignal(sidebar.groups.changed);
  return {
    environments,
    devices: sidebar.devices.devices?.devices ?? [],
    groups: sidebar.groups.groups,
    launchers: launchers?.launchers ?? null,
    presets: presets?.presets ?? [],
    options: options?.options ?? []
  };
}
