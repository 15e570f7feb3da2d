/** The form for a new group. */
import { Button } from '@jupyterlab/ui-components';
import React, { useEffect, useRef, useState } from 'react';
import {
  acceleratorOf,
  defaultForm,
  IStartForm,
  IStartWorld,
  problems,
  startRequest
} from '../../../model/groups/startform';
import { DistError } from '../../../services/errors';
import type { IEnvironment, IErrorBody, IGroup } from '../../../services/protocol';
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
  RanksField
} from './startfields';

export interface IStartFormProps {
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

function Fields({ environments, preferred, ranks, onClose, onStarted }: IFieldsProps): React.ReactElement {
  const sidebar = useSidebar();
  const { trans } = sidebar;
  const world = useWorld(sidebar, environments);
  const [form, setForm] = useState<IStartForm>(() => defaultForm(world, preferred, ranks));
  const submission = useSubmission(sidebar, onStarted);
  const node = useRef<HTMLFormElement>(null);
  useEffect(() => {
    node.current?.scrollIntoView({ block: 'nearest' });
    node.current?.querySelector('input')?.select();
  }, []);
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
      <AcceleratorField {...field} />
      {acceleratorOf(form, world) ? <DevicesField {...field} /> : <RanksField {...field} />}
      <details className="jpd-StartForm-more">
        <summary>{trans.__('Backend and folder')}</summary>
        <BackendField {...field} />
        <DirectoryField {...field} />
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

function useWorld(sidebar: ISidebarContext, environments: IEnvironment[]): IStartWorld {
  useSignal(sidebar.devices.changed);
  useSignal(sidebar.groups.changed);
  return {
    environments,
    devices: sidebar.devices.devices?.devices ?? [],
    groups: sidebar.groups.groups
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
