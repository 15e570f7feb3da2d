/** The ranks as tabs, each with a light and a number, in as many rows as needed. */
import { TabBar, Widget } from '@lumino/widgets';

export class RankTabs extends TabBar<Widget> {
  constructor() {
    super({ allowDeselect: false, tabsMovable: false, insertBehavior: 'none' });
    this.addClass('jpd-RankTabs');
  }
}
