/** A row in JupyterLab's debugger panel: which rank it shows, and whether steps are for all ranks or for that one. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import React from 'react';
import type { DebugConnection } from './debugconnection';
import type { IStop } from './rankstates';
import { useSignal } from '../../widgets/base/hooks';

export class RankRow extends ReactWidget {
  constructor(
    private readonly _trans: TranslationBundle,
    /** Called when another rank is shown. */
    private readonly _shows: (connection: DebugConnection) => void
  ) {
    super();
    this.addClass('jpd-DebuggedRank');
    this.hide();
  }

  /** Show the debuggers of this connection; hidden where there is nothing to choose. */
  get connection(): DebugConnection | null {
    return this._connection;
  }

  set connection(connection: DebugConnection | null) {
    if (this._connection && !this._connection.isDisposed) {
      this._connection.changed.disconnect(this._onChanged, this);
    }
    this._connection = connection;
    connection?.changed.connect(this._onChanged, this);
    this._onChanged();
    this.update();
  }

  dispose(): void {
    Signal.clearData(this);
    super.dispose();
  }

  render(): React.ReactElement {
    return this._connection ? (
      <Row key={this._connection.id} connection={this._connection} trans={this._trans} />
    ) : (
      <></>
    );
  }

  private _onChanged(): void {
    if (this._connection?.isStarted) {
      this._shows(this._connection);
    }
    this.setHidden(!this._connection?.isStarted || this._connection.ranks.length < 2);
  }

  private _connection: DebugConnection | null = null;
}

interface IRowProps {
  connection: DebugConnection;
  trans: TranslationBundle;
}

function Row({ connection, trans }: IRowProps): React.ReactElement {
  const { ranks, shown, isAlone, states } = connection;
  useSignal(connection.changed);
  useSignal(states.changed);
  const stopped = states.states.filter(state => state.stopped);
  return (
    <>
      <label className="jpd-DebuggedRank-field">
        {trans.__('Show')}
        <HTMLSelect
          aria-label={trans.__('Rank whose stack, variables and console the panel shows')}
          value={shown}
          onChange={event => connection.show(Number(event.target.value))}
        >
          {ranks.map(rank => (
            <option key={rank} value={rank}>
              {rankLabel(trans, rank, states.stoppedAt(rank))}
            </option>
          ))}
        </HTMLSelect>
      </label>
      <label className="jpd-DebuggedRank-field">
        {trans.__('Step')}
        <HTMLSelect
          aria-label={trans.__('Ranks that Continue and the steps are for')}
          value={isAlone ? 'alone' : 'all'}
          onChange={event => (connection.isAlone = event.target.value === 'alone')}
        >
          <option value="all">{trans.__('all ranks')}</option>
          <option value="alone">{trans.__('rank %1 alone', shown)}</option>
        </HTMLSelect>
      </label>
      <div className="jpd-DebuggedRank-summary" role="status">
        {stopped.length === ranks.length
          ? trans.__('All %1 ranks are stopped.', ranks.length)
          : trans._n('%1 of %2 ranks is stopped.', '%1 of %2 ranks are stopped.', stopped.length, ranks.length)}
      </div>
    </>
  );
}

function rankLabel(trans: TranslationBundle, rank: number, stop: IStop | null): string {
  if (!stop) {
    return trans.__('rank %1', rank);
  }
  if (stop.line === null) {
    return trans.__('rank %1: stopped', rank);
  }
  return stop.file === null
    ? trans.__('rank %1: line %2', rank, stop.line)
    : trans.__('rank %1: %2:%3', rank, stop.file, stop.line);
}
