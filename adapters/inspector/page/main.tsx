import { render } from 'preact'
import { openAgent } from './agent/agent.ts'
import { followTask } from './agent/task-log.ts'
import { App } from './app.tsx'
import { openFeed } from './feed/feed.ts'
import { askForFrames } from './frames/frames-panel.tsx'
import { hearKeys } from './keys.ts'
import { keepAddress } from './selection.ts'
import { chooseFirst } from './tasks/task-list.tsx'
import { keepTheme } from './theme.ts'
import { startAtNewest } from './timeline/timeline-panel.tsx'

for (const begin of [keepTheme, keepAddress, hearKeys, openFeed, openAgent, followTask, chooseFirst, startAtNewest, askForFrames]) begin()
render(<App />, document.body)
