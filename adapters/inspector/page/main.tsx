import { render } from 'preact'
import { openAgent } from './agent/agent.ts'
import { followTask } from './agent/task-log.ts'
import { openFeed } from './feed/feed.ts'
import { askForFrames } from './frames/frames-panel.tsx'
import { Header } from './header.tsx'
import { Help, isHelpOpen } from './help.tsx'
import { keepAddress, part, PARTS } from './selection.ts'
import { Tabs } from './tabs.tsx'
import { chooseFirst, TaskList } from './tasks/task-list.tsx'
import { keepTheme } from './theme.ts'
import { startAtNewest } from './timeline/timeline-panel.tsx'

for (const begin of [keepTheme, keepAddress, hearKeys, openFeed, openAgent, followTask, chooseFirst, startAtNewest, askForFrames]) begin()
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
    if (event.key === 'Escape') return focus('.tasks [role=listbox]')
    if (isTyping(event.target)) return
    const act = actOf(event.key)
    if (!act) return
    event.preventDefault()
    act()
  })
}

function actOf(key: string): (() => void) | undefined {
  if (key === '/') return () => focus('#search')
  if (key === '?') return () => (isHelpOpen.value = true)
  if (key === 'm') return () => talk()
  const chosen = /^\d$/.test(key) ? PARTS[Number(key) - 1] : undefined
  return chosen && (() => (part.value = chosen))
}

function talk(): void {
  part.value = 'talk'
  requestAnimationFrame(() => focus('#composer'))
}

function focus(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus()
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}
