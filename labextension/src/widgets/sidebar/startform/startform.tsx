/** The form for a new group. */
import { Button } from '@jupyterlab/ui-components';
import React, { useEffect, useRef, useState } from 'react';
import {
  acceleratorOf,
  defaultForm,
  FilledForm,
  filledForm,
  IStartForm,
  isOnNodes,
  IStartWorld,
  problems,
  startRequest
} from '../../../model/groups/startform';
import { DistError } from '../../../services/errors';
import type { IEnvironment, IErrorBody, IGroup, ILauncherStatus } from '../../../services/protocol';
import { ErrorNote } from '../../errornote';
import { useSignal } from '../../hooks';
import { ISidebarContext, useSidebar } from '../context';
import {
  AcceleratorField,
  BackendField,
  DevicesField,
  DirectoryField,
  EnvironmentField,
  NameField,
  RanksField,
  VariablesField
} from './startfields';
import { LauncherField, NodesField, OptionFields } from './nodefields';

export interface IStartFormProps {
  /** What it is filled in with. */
  readonly wanted: FilledForm | null;
  /** The initial number of CPU ranks. */
  readonly ranks: number;
  readonly onClose: () => void;
  readonly onStarted: (group: IGroup) => void;
}

export function StartForm(props: IStartFormProps): React.ReactElement {
  const { trans } = useSidebar();
  const known = useEnvironments();
  if (known.error) {
    return <ErrorNote error={known.error} />;
  }
  if (!known.environments) {
    return <p className="jpd-Sidebar-quiet">{trans.__('Looking for Python environments\u2026')}</p>;
  }
  return <Fields {...props} environments={known.environments} preferred={known.preferred} />;
}

interface IFieldsProps extends IStartFormProps {
  readonly environments: IEnvironment[];
  readonly preferred: string | null;
}

function Fields({ environments, preferred, ranks, wanted, onClose, onStarted }: IFieldsProps): React.ReactElement {
  const sidebar = useSidebar();
  const { trans } = sidebar;
  const world = useWorld(sidebar, environments);
  const [form, setForm] = useState<IStartForm>(() => filledForm(defaultForm(world, preferred, ranks), wanted));
  const submission = useSubmission(sidebar, onStarted);
  const node = useShown();
  const set = (changes: Partial<IStartForm>) => setForm(old => ({ ...old, ...changes }));
  const found = problems(form, world);
  const field = { form, world, found, set };
  const isBad = Object.keys(found).length > 0;
  return (
    <form
      ref={node}
      className="jpd-StartForm"
      aria-label={trans.__('Start a group of ranks')}
      noValidate
      onSubmit={event => {
        event.preventDefault();
        if (!isBad && !submission.isPending) {
          submission.submit(form, world);
        }
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          onClose();
        }
      }}
    >
      <NameField {...field} />
      <EnvironmentField {...field} />
      <LauncherField {...field} />
      {isOnNodes(form) && <NodesField {...field} />}
      <AcceleratorField {...field} />
      {acceleratorOf(form, world) && !isOnNodes(form) ? <DevicesField {...field} /> : <RanksField {...field} />}
      {isOnNodes(form) && <OptionFields {...field} />}
      <details className="jpd-StartForm-more" open={form.env !== '' || undefined}>
        <summary>{trans.__('Backend, folder and variables')}</summary>
        <BackendField {...field} />
        <DirectoryField {...field} />
        <VariablesField {...field} />
      </details>
      {submission.error && <ErrorNote error={submission.error} />}
      <div className="jpd-StartForm-buttons">
        <Button type="button" className="jp-mod-styled jp-mod-reject" minimal={false} onClick={onClose}>
          {trans.__('Cancel')}
        </Button>
        <Button
          type="submit"
          className="jp-mod-styled jp-mod-accept"
          minimal={false}
          disabled={isBad || submission.isPending}
        >
          {submission.isPending ? trans.__('Starting\u2026') : trans.__('Start')}
        </Button>
      </div>
    </form>
  );
}

/** The form, in view and ready to type in. */
function useShown(): React.RefObject<HTMLFormElement> {
  const node = useRef<HTMLFormElement>(null);
  useEffect(() => {
    node.current?.scrollIntoView({ block: 'nearest' });
    node.current?.querySelector('input')?.select();
  }, []);
  return node;
}

interface IKnown {
  readonly environments: IEnvironment[] | null;
  readonly preferred: string | null;
  readonly error: IErrorBody | null;
}

function useEnvironments(): IKnown {
  const { service } = useSidebar();
  const [known, setKnown] = useState<IKnown>({ environments: null, preferred: null, error: null });
  useEffect(() => {
    let isMounted = true;
    service.environments().then(
      answer =>
        isMounted &&
        setKnown({ environments: answer.environments, preferred: answer.default, error: null }),
      reason => isMounted && setKnown({ environments: null, preferred: null, error: errorBody(reason) })
    );
    return () => {
      isMounted = false;
    };
  }, [service]);
  return known;
}

/** Each launcher with what it says of itself; asking an engine can take seconds, and the form does not wait. */
function useLaunchers(): readonly ILauncherStatus[] {
  const { service } = useSidebar();
  const [launchers, setLaunchers] = useState<readonly ILauncherStatus[]>([]);
  useEffect(() => {
    let isMounted = true;
    service.launchers().then(
      found => isMounted && setLaunchers(found),
      reason => console.warn('jupyter_dist: could not list the launchers', reason)
    );
    return () => {
      isMounted = false;
    };
  }, [service]);
  return launchers;
}

function useWorld(sidebar: ISidebarContext, environments: IEnvironment[]): IStartWorld {
  const launchers = useLaunchers();
  useSignal(sidebar.devices.changed);
  useSignal(sidebar.groups.changed);
  return {
    environments,
    devices: sidebar.devices.devices?.devices ?? [],
    groups: sidebar.groups.groups,
    launchers
  };
}

interface ISubmission {
  readonly error: IErrorBody | null;
  readonly isPending: boolean;
  readonly submit: (form: IStartForm, world: IStartWorld) => void;
}

function useSubmission(sidebar: ISidebarContext, onStarted: (group: IGroup) => void): ISubmission {
  const [error, setError] = useState<IErrorBody | null>(null);
  const [isPending, setPending] = useState(false);
  const submit = (form: IStartForm, world: IStartWorld) => {
    setPending(true);
    setError(null);
    sidebar.service.startGroup(startRequest(form, world, sidebar.notebook())).then(
      group => onStarted(group),
      reason => {
        setPending(false);
        setError(errorBody(reason));
      }
    );
  };
  return { error, isPending, submit };
}

/** The error to show for any failure. */
export function errorBody(reason: unknown): IErrorBody {
  if (reason instanceof DistError) {
    return { code: reason.code, message: reason.message, hint: reason.hint };
  }
  return { code: 'internal', message: String(reason), hint: '' };
}
