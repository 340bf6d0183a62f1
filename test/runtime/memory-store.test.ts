import t from 'tap'
import { memoryStore } from '../../runtime/memory-store.ts'
import { storeSuite } from '../fixtures/store-suite.ts'

await storeSuite(t, 'memoryStore', () => memoryStore())
