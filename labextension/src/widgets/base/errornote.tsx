/** An error of the product, as the page shows it: what is wrong, what to do, and where to read more. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { Button } from '@jupyterlab/ui-components';
import React from 'react';
import { DistError, loaded, localized, helpLink, openHelp } from '../../services/errors';
import { translation } from '../../services/translation';
import type { IErrorBody } from '../../services/protocol';
import { GroupNotice, notifyGroup } from '../notices/groupnotices';
import { withWhole } from '../notices/whole';
import { useAsked } from './hooks';

export function ErrorNote({ error: given }: { error: IErrorBody }): React.ReactElement {
  const error = localized(given);
  return (
    <div className="jpd-Error" role="alert">
      <p>{error.message}</p>
      <p className="jpd-Error-hint">
        {error.hint} <HelpLink error={error} />
      </p>
    </div>
  );
}

/** A component that is loaded when it is first shown; if that fails, an error is shown until it is there. */
export function lazily<P extends object>(load: () => Promise<React.ComponentType<P>>): React.ComponentType<P> {
  const part = async (): Promise<React.ComponentType<P>> => loaded(load());
  const Again = (props: P): React.ReactElement | null => {
    const { answer, error } = useAsked(async () => ({ Found: await part() }));
    return answer ? <answer.Found {...props} /> : error && <ErrorNote error={error} />;
  };
  const found = React.lazy(async () => ({ default: await part().catch(() => Again) }));
  const Part = found as unknown as React.ComponentType<P>; // the types of lazy components are for those with references
  return props => (
    <React.Suspense fallback={<p className="jpd-Loading">{translation().__('Loading\u2026')}</p>}>
      <Part {...props} />
    </React.Suspense>
  );
}

interface INotAnsweredProps {
  /** What could not be shown, as a sentence. */
  readonly what: string;
  readonly error: IErrorBody;
  readonly again: () => void;
}

/** Why the server did not answer, and a button that asks again. */
export function NotAnswered({ what, error, again }: INotAnsweredProps): React.ReactElement {
  return (
    <div className="jpd-NotAnswered">
      <ErrorNote error={{ ...error, message: `${what} ${error.message}` }} />
      <Button type="button" className="jp-mod-styled" minimal={false} onClick={again}>
        {translation().__('Try again')}
      </Button>
    </div>
  );
}

/** The same in one line, where the view works without the answer. */
export function NotAnsweredLine({ what, error, again }: INotAnsweredProps): React.ReactElement {
  return (
    <p className="jpd-NotAnswered-line" role="alert" title={error.hint || undefined}>
      {`${what} ${error.message}`}{' '}
      <button type="button" onClick={again}>
        {translation().__('Try again')}
      </button>
    </p>
  );
}

function HelpLink({ error }: { error: IErrorBody }): React.ReactElement {
  const { href, text, label } = helpLink(error);
  return (
    <a className="jpd-HelpLink" href={href} target="_blank" rel="noopener noreferrer" aria-label={label}>
      {text}
    </a>
  );
}

/** The link, for widgets that draw without React. */
export function createHelpLink(error: IErrorBody): HTMLAnchorElement {
  const { href, text, label } = helpLink(error);
  const link = document.createElement('a');
  Object.assign(link, {
    className: 'jpd-HelpLink',
    href,
    target: '_blank',
    rel: 'noopener noreferrer',
    textContent: text
  });
  link.setAttribute('aria-label', label);
  // In a notebook's command mode Enter edits the cell; here it opens the link.
  link.dataset.lmSuppressShortcuts = 'true';
  return link;
}

/** JupyterLab shows what has no time limit in its list only, behind a bell. */
const ERROR_MS = 10_000;

/**
 * Notify of what an action failed with; an error of ours has a button that opens its entry. It closes by itself, and
 * stays in JupyterLab's list. `group`: the id of the group that it is about.
 */
export function notifyError(reason: unknown, { group }: { group?: string } = {}): void {
  const { message, actions } = noticeOf(reason);
  if (group === undefined) {
    Notification.error(message, { autoClose: ERROR_MS, actions: withWhole(message, actions) });
  } else {
    notifyGroup(group, message, 'error', { autoClose: ERROR_MS, actions });
  }
}

/** The same, shown until it is ended, or the group has something newer to show. `holds`: its reason lasts until it is ended. */
export function notifyFailure(reason: unknown, group: string, options: { holds?: true } = {}): GroupNotice {
  const { message, actions } = noticeOf(reason);
  return notifyGroup(group, message, 'error', { autoClose: false, ...options, actions });
}

function noticeOf(reason: unknown): { message: string; actions: Notification.IAction[] } {
  if (reason instanceof DistError) {
    const help = { label: translation().__('Help'), callback: () => openHelp(reason) };
    return { message: `${reason.message} ${reason.hint}`.trim(), actions: [help] };
  }
  return { message: reason instanceof Error ? reason.message : String(reason), actions: [] };
}

/** Show an error in a dialog. */
export async function explainError(title: string, error: IErrorBody): Promise<void> {
  await showDialog({ title, body: <ErrorNote error={error} />, buttons: [Dialog.okButton()] });
}
