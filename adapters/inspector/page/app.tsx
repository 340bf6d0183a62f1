import { Header } from './header.tsx'
import { Help } from './help.tsx'
import { Tabs } from './tabs.tsx'
import { TaskList } from './tasks/task-list.tsx'

/** The whole page. */
export function App() {
  return (
    <>
      <Header />
      <TaskList />
      <Tabs />
      <Help />
    </>
  )
}
