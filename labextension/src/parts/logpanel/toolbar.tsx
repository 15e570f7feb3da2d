/** The tools of the rank output panel: search, follow, clear, download. */
import { caretDownIcon, caretUpIcon, downloadIcon, moveDownIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import React, { useEffect, useRef } from 'react';
import type { IDownload } from '../../services/service';
import { notifyError } from '../../widgets/base/errornote';
import { useSignal } from '../../widgets/base/hooks';
import { clearViewIcon } from '../../widgets/base/icons';
import { saveUrl } from '../../widgets/base/savefile';
import type { LogPanel } from './logpanel';
import type { RankLog } from './ranklog';

/** The full log of a rank, as a file. */
export interface ILogDownload {
  /** Its URL, for the link. */
  url(rank: number): string;
  /** A URL that the browser can download it from. */
  fetch(rank: number): Promise<IDownload>;
  name(rank: number): string;
}

export class LogToolbar extends ReactWidget {
  constructor(panel: LogPanel, trans: TranslationBundle, download: ILogDownload) {
    super();
    this.addClass('jpd-LogToolbar');
    this._panel = panel;
    this._trans = trans;
    this._download = download;
  }

  /** Focus the search field, as soon as it exists: React renders it a moment after the panel. */
  focusSearch(): void {
    const input = this.node.querySelector('input');
    this._isFocusWanted = !input;
    input?.focus();
    input?.select();
  }

  protected render(): React.ReactElement {
    const ready = () => (this._isFocusWanted ? this.focusSearch() : undefined);
    return <Tools panel={this._panel} trans={this._trans} download={this._download} ready={ready} />;
  }

  private readonly _panel: LogPanel;
  private readonly _trans: TranslationBundle;
  private readonly _download: ILogDownload;
  private _isFocusWanted = false;
}

interface IToolsProps {
  readonly panel: LogPanel;
  readonly trans: TranslationBundle;
  readonly download: ILogDownload;
  /** Called when the toolbar is rendered. */
  readonly ready: () => void;
}

function Tools({ panel, ...props }: IToolsProps): React.ReactElement | null {
  useSignal(panel.currentChanged);
  const log = panel.current;
  return log ? <LogTools key={log.rank} log={log} {...props} /> : null;
}

interface ILogToolsProps extends Omit<IToolsProps, 'panel'> {
  readonly log: RankLog;
}

function LogTools({ log, trans, download, ready }: ILogToolsProps): React.ReactElement {
  useSignal(log.changed);
  useEffect(ready, []);
  return (
    <>
      <Search log={log} trans={trans} />
      <LogToolButton
        icon={moveDownIcon}
        label={trans.__('Follow new output')}
        pressed={log.view.follow}
        onClick={() => log.setFollow(!log.view.follow)}
      />
      <LogToolButton
        icon={clearViewIcon}
        label={trans.__('Clear the view (the log is kept)')}
        onClick={() => log.log.clear()}
      />
      <a
        className="jpd-LogTool"
        href={download.url(log.rank)}
        download={download.name(log.rank)}
        onClick={event => {
          event.preventDefault();
          void save(download, log.rank);
        }}
        title={trans.__('Download the full log of rank %1', log.rank)}
        aria-label={trans.__('Download the full log of rank %1', log.rank)}
      >
        <downloadIcon.react tag="span" width="16px" />
      </a>
    </>
  );
}

/** Let the browser save a log. */
async function save(download: ILogDownload, rank: number): Promise<void> {
  try {
    const { url, release } = await download.fetch(rank);
    saveUrl(url, download.name(rank), release);
  } catch (reason) {
    notifyError(reason);
  }
}

function Search({ log, trans }: { log: RankLog; trans: TranslationBundle }): React.ReactElement {
  const { search } = log;
  const input = useRef<HTMLInputElement>(null);
  const go = (step: 1 | -1) => {
    log.view.follow = false;
    search.move(step);
  };
  return (
    <div className="jpd-LogSearch" role="search" aria-label={trans.__('Find in the output of rank %1', log.rank)}>
      <input
        ref={input}
        className="jp-mod-styled"
        type="text"
        placeholder={trans.__('Find in visible output')}
        aria-label={trans.__('Find in visible output')}
        defaultValue={search.query}
        spellCheck={false}
        onChange={event => {
          log.view.follow = log.view.follow && event.target.value === '';
          search.query = event.target.value;
        }}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            go(event.shiftKey ? -1 : 1);
          } else if (event.key === 'Escape' && input.current) {
            input.current.value = '';
            search.query = '';
            log.view.node.focus();
          }
        }}
      />
      <span className="jpd-LogSearch-count">{search.query === '' ? '' : `${search.position}/${search.count}`}</span>
      <span className="jpd-Spoken" role="status">
        {search.found}
      </span>
      <LogToolButton
        icon={caretUpIcon}
        label={trans.__('Previous match')}
        disabled={search.count === 0}
        onClick={() => go(-1)}
      />
      <LogToolButton
        icon={caretDownIcon}
        label={trans.__('Next match')}
        disabled={search.count === 0}
        onClick={() => go(1)}
      />
    </div>
  );
}

interface ILogToolButtonProps {
  readonly icon: LabIcon;
  readonly label: string;
  /** For a toggle: whether it is on. */
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly onClick: () => void;
}

function LogToolButton(props: ILogToolButtonProps): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-LogTool"
      title={props.label}
      aria-label={props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <props.icon.react tag="span" width="16px" />
    </button>
  );
}
