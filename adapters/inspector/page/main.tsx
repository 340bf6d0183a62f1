import { effect } from '@preact/signals'
import { render } from 'preact'
import { openAgent } from './agent/agent.ts'
import { followTasks, showExample } from './agent/task-log.ts'
import { openFeed } from './feed/feed.ts'
import { focusOn } from './frame/focus.ts'
import { askForFrames } from './frames/frames-panel.tsx'
import { Header } from './header.tsx'
import { Help, isHelpOpen } from './help.tsx'
import { keepAddress, part, PARTS, phoneView, showTalk } from './selection.ts'
import { showTab, Tabs } from './tabs.tsx'
import { chooseFirst, startNew, TaskList } from './tasks/task-list.tsx'
import { keepTheme } from './theme.ts'
import { startAtNewest, step } from './time/generation.ts'

for (const begin of [
  keepTheme,
  keepAddress,
  hearKeys,
  openFeed,
  openAgent,
  followTasks,
  showExample,
  chooseFirst,
  startAtNewest,
  askForFrames,
  showTab,
  showView
])
  begin()
render(<App />, document.body)

function App() {
  return (
    <>
      <Header />
      <TaskList />
      <Tabs />
      <Help />
    </>
  )
}

/** Handles the page's keyboard shortcuts, except in input fields. */
function hearKeys(): void {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    if (event.key === 'Escape') return toList()
    if (isTyping(event.target)) return
    const act = actOf(event.key)
    if (!act) return
    event.preventDefault()
    act()
  })
}

function actOf(key: string): (() => void) | undefined {
  if (key === '/') return () => ((phoneView.value = 'list'), focusOn('#search'))
  if (key === '?') return () => (isHelpOpen.value = true)
  if (key === 'm') return () => talk()
  if (key === ',') return () => step(-1)
  if (key === '.') return () => step(1)
  if (key === 'n') return () => startNew()
  const chosen = /^\d$/.test(key) ? PARTS[Number(key) - 1] : undefined
  return chosen && (() => (part.value = chosen))
}

/** Tells the styles which of list and task a small screen shows. */
function showView(): void {
  effect(() => void (document.documentElement.dataset.view = phoneView.value))
}

function talk(): void {
  showTalk()
  focusOn('#composer')
}

function toList(): void {
  phoneView.value = 'list'
  focusOn('.tasks [role=listbox]')
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}
