import type { AddressInfo } from 'node:net'
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import express from 'express'
import { report } from './control.ts'
import { sdkHandler } from './sdk-handler.ts'

const app = express()
app.use(jsonRpcHandler({ requestHandler: sdkHandler(), userBuilder: UserBuilder.noAuthentication }))
const server = app.listen(0, '127.0.0.1', () => report((server.address() as AddressInfo).port))
