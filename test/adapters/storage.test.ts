import { join } from 'node:path'
import t from 'tap'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { storeSuite } from '../fixtures/store-suite.ts'

await storeSuite(t, 'sqliteStore', t => sqliteStore(join(t.testdir(), 'tasks.db')))
