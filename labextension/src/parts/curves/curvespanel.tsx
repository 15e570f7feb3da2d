/** The panel with the curves of a group's cells, for the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, LabIcon } from '@jupyterlab/ui-components';
import React, { useEffect, useRef } from 'react';
import { shortened } from '../../model/format/characters';
import { GroupCurvesModel } from './model/groupcurves';
import type { IExecution, IGroup } from '../../services/protocol';
import type { IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import { ErrorNote } from '../../widgets/base/errornote';
import { GroupPanel } from '../../widgets/base/grouppanel';
import { useSignal } from '../../widgets/base/hooks';
import { CurvesView } from './curvesview';

/** A longer first line of a cell is cut. */
const MAX_LINE = 40;

/** A curve on two axes. */
const curvesIcon = new LabIcon({
  name: 'jupyter-dist:curves',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M3 3h2v16h16v2H3z"/>
    <path d="M7 5.5l1.9-.7C10.800 10 13.500 13.500 20.500 14.300l-.3 2C12.200 15.300 9.100 11.200 7 5.500z"/>
  </g>
</svg>`
});

export interface ICurvesPanelOptions {
  readonly service: IDistService;
  readonly executions: IDistExecutions;
  readonly groups: IDistGroups;
  readonly group: IGroup;
  readonly trans: TranslationBundle;
}

export class CurvesPanel extends GroupPanel<GroupCurvesModel> {
  constructor({ service, executions, groups, group, trans }: ICurvesPanelOptions) {
    super(
      new GroupCurvesModel(service, executions, groups, group.id),
      'curves',
      trans.__('Curves: %1', group.name),
      curvesIcon
    );
    this._trans = trans;
    this.addClass('jpd-CurvesPanel');
  }

  /** Show the curves of this execution. */
  choose(execution: string): void {
    this.model.choose(execution);
  }

  protected render(): React.ReactElement {
    return <CurvesPanelView model={this.model} trans={this._trans} onReady={this.onReady} />;
  }

  protected takeFocus(): boolean {
    const select = this.node.querySelector('select');
    select?.focus();
    return select !== null;
  }

  private readonly _trans: TranslationBundle;
}

interface ICurvesPanelViewProps {
  model: GroupCurvesModel;
  trans: TranslationBundle;
  /** Called when it is drawn. */
  onReady(): void;
}

function CurvesPanelView({ model, trans, onReady }: ICurvesPanelViewProps): React.ReactElement {
  useSignal(model.changed);
  useEffect(onReady, []);
  const { cells, chosen, shown, error } = model;
  const isListed = chosen === null || cells.some(({ id }) => id === chosen);
  return (
    <>
      <div className="jpd-CurvesPanel-tools">
        <HTMLSelect
          aria-label={trans.__('Cell')}
          value={chosen ?? ''}
          onChange={event => model.choose(event.target.value || null)}
        >
          <option value="">{trans.__('Last cell with curves')}</option>
          {!isListed && <option value={chosen}>{trans.__('The chosen cell')}</option>}
          {cells.map(cell => (
            <option key={cell.id} value={cell.id}>
              {cellWords(cell)}
            </option>
          ))}
        </HTMLSelect>
      </div>
      {error && <ErrorNote error={error} />}
      {!shown && !error && (
        <p role="status">
          {model.isGone
            ? trans.__('The group has ended.')
            : trans.__(
                'No curves: a cell has some when its ranks have printed a number with a name, such as "loss 0.25", three times.'
              )}
        </p>
      )}
      <Charts model={model} trans={trans} />
    </>
  );
}

/** "[7] train.ipynb: for step in range(100):". */
function cellWords({ execution_count: count, notebook, line }: IExecution): string {
  const place = `[${count ?? ' '}] ${notebook?.split('/').pop() ?? ''}`.trim();
  const text = line?.trim() ?? '';
  return text ? `${place}: ${shortened(text, MAX_LINE)}` : place;
}

/** The charts, which live longer than a rendering. */
function Charts({ model, trans }: Pick<ICurvesPanelViewProps, 'model' | 'trans'>): React.ReactElement {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new CurvesView(host.current!, trans);
    const draw = (): void => (model.shown ? view.update(model.shown) : view.clear());
    model.changed.connect(draw);
    draw();
    return () => {
      model.changed.disconnect(draw);
      view.dispose();
    };
  }, [model]);
  return <div ref={host} className="jpd-Curves" />;
}
