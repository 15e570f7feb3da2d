/** The ranks as tabs: a light and a number each, in as many rows as they need. */
import { TabBar, Widget } from '@lumino/widgets';

export class RankTabs extends TabBar<Widget> {
  constructor() {
    super({ allowDeselect: false, tabsMovable: false, insertBehavior: 'none' });
    this.addClass('jpd-RankTabs');
  }
}
