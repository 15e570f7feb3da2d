import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { ExecutionsModel } from '../model/executions/executions';
import { GroupsModel } from '../model/groups/groups';
import { DistService } from '../services/service';
import { setTranslation } from '../services/translation';
import { IDistExecutions, IDistGroups, IDistService } from '../tokens';
import { groupNotices } from '../widgets/notices/groupnotices';

/** The server as one object. */
export const servicePlugin: JupyterFrontEndPlugin<IDistService> = {
  id: 'jupyter-dist:service',
  description: 'Provides the jupyter_dist server: REST and the WebSocket.',
  autoStart: true,
  provides: IDistService,
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null): IDistService => {
    setTranslation((translator ?? nullTranslator).load('jupyter_dist'));
    return new DistService(app.serviceManager.serverSettings);
  }
};

/** All groups, kept up to date. */
export const groupsPlugin: JupyterFrontEndPlugin<IDistGroups> = {
  id: 'jupyter-dist:groups',
  description: 'Provides the groups of ranks and their state.',
  autoStart: true,
  requires: [IDistService],
  provides: IDistGroups,
  activate: (_: JupyterFrontEnd, service: IDistService): IDistGroups => {
    const groups = new GroupsModel(service);
    groups.changed.connect(() => groupNotices.keep(groups.groups));
    return groups;
  }
};

/** Cells on ranks. */
export const executionsPlugin: JupyterFrontEndPlugin<IDistExecutions> = {
  id: 'jupyter-dist:executions',
  description: 'Runs code on ranks and follows their output.',
  autoStart: true,
  requires: [IDistService],
  provides: IDistExecutions,
  activate: (_: JupyterFrontEnd, service: IDistService): IDistExecutions => new ExecutionsModel(service)
};
