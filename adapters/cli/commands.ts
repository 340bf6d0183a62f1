import { cardCommand } from './card/card.ts'
import { clusterCommand } from './cluster/command.ts'
import type { Command } from './command.ts'
import { completionCommand } from './completion.ts'
import { dbCommand } from './db.ts'
import { devCommand } from './dev/dev.ts'
import { doctorCommand } from './doctor/doctor.ts'
import { graphCommand } from './graph.ts'
import { initCommand } from './init/init.ts'
import { openCommand } from './open.ts'
import { serveCommand } from './serve/serve.ts'
import { chatCommand } from './talk/chat/chat.ts'
import { sendCommand } from './talk/send.ts'
import { watchCommand } from './talk/watch.ts'
import { tasksCommand } from './tasks/command.ts'
import { coverageCommand } from './test/coverage.ts'
import { pathsCommand } from './test/paths.ts'
import { proveCommand } from './test/prove.ts'
import { replayCommand } from './test/replay.ts'
import { testCommand } from './test/test.ts'

/** All commands, in the order of the help. Help, completion and corrections come from this table. */
export const COMMANDS: readonly Command[] = [
  initCommand, devCommand, serveCommand, clusterCommand, chatCommand, sendCommand, watchCommand, cardCommand, tasksCommand, dbCommand, replayCommand, pathsCommand,
  testCommand, coverageCommand, proveCommand, graphCommand, openCommand, doctorCommand, completionCommand(() => COMMANDS)
]
