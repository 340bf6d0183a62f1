import type * as z from 'zod'
import {
  anyString,
  defaultField,
  map,
  message,
  nonEmptyText,
  oneOf,
  optionalFlag,
  optionalList,
  optionalMap,
  optionalText,
  requiredField
} from './codec/decode.ts'

/** A list of strings as the proto has it, wrapped in an object. */
export const StringListSchema = message({ list: optionalList(anyString) })

/** Security schemes that are all required, each with its scopes (§4.5). */
export const SecurityRequirementSchema = message({ schemes: optionalMap(StringListSchema) })

/** Security schemes that are all required, each with its scopes; a list of these means any one of them (§4.5). */
export interface SecurityRequirement extends z.output<typeof SecurityRequirementSchema> {}

/** An API key in the query, a header or a cookie (§4.5.2). */
export const APIKeySecuritySchemeSchema = message({
  description: optionalText,
  location: requiredField(nonEmptyText),
  name: requiredField(nonEmptyText)
})

/** An HTTP authentication scheme such as Bearer (§4.5.3). */
export const HTTPAuthSecuritySchemeSchema = message({
  description: optionalText,
  scheme: requiredField(nonEmptyText),
  bearerFormat: optionalText
})

const scopes = defaultField(map(anyString), (): Record<string, string> => ({}))

/** OAuth 2.0's authorization code flow (§4.5.8). */
export const AuthorizationCodeOAuthFlowSchema = message({
  authorizationUrl: requiredField(nonEmptyText),
  tokenUrl: requiredField(nonEmptyText),
  refreshUrl: optionalText,
  scopes,
  pkceRequired: optionalFlag
})

/** OAuth 2.0's client credentials flow (§4.5.9). */
export const ClientCredentialsOAuthFlowSchema = message({
  tokenUrl: requiredField(nonEmptyText),
  refreshUrl: optionalText,
  scopes
})

/** OAuth 2.0's implicit flow, which the spec deprecates. */
export const ImplicitOAuthFlowSchema = message({
  authorizationUrl: optionalText,
  refreshUrl: optionalText,
  scopes: optionalMap(anyString)
})

/** OAuth 2.0's password flow, which the spec deprecates. */
export const PasswordOAuthFlowSchema = message({
  tokenUrl: optionalText,
  refreshUrl: optionalText,
  scopes: optionalMap(anyString)
})

/** OAuth 2.0's device code flow (§4.5.10, RFC 8628). */
export const DeviceCodeOAuthFlowSchema = message({
  deviceAuthorizationUrl: requiredField(nonEmptyText),
  tokenUrl: requiredField(nonEmptyText),
  refreshUrl: optionalText,
  scopes
})

/** Which OAuth 2.0 flow is offered (§4.5.7): exactly one. */
export const OAuthFlowsSchema = oneOf(
  {
    authorizationCode: requiredField(AuthorizationCodeOAuthFlowSchema),
    clientCredentials: requiredField(ClientCredentialsOAuthFlowSchema),
    implicit: requiredField(ImplicitOAuthFlowSchema),
    password: requiredField(PasswordOAuthFlowSchema),
    deviceCode: requiredField(DeviceCodeOAuthFlowSchema)
  },
  {}
)

/** Which OAuth 2.0 flow is offered (§4.5.7): exactly one. */
export type OAuthFlows = z.output<typeof OAuthFlowsSchema>

/** OAuth 2.0 (§4.5.4). */
export const OAuth2SecuritySchemeSchema = message({
  description: optionalText,
  flows: requiredField(OAuthFlowsSchema),
  oauth2MetadataUrl: optionalText
})

/** OpenID Connect, by its discovery URL (§4.5.5). */
export const OpenIdConnectSecuritySchemeSchema = message({
  description: optionalText,
  openIdConnectUrl: requiredField(nonEmptyText)
})

/** A client certificate (§4.5.6). */
export const MutualTlsSecuritySchemeSchema = message({ description: optionalText })

/** One way to authenticate callers (§4.5.1): exactly one of five. */
export const SecuritySchemeSchema = oneOf(
  {
    apiKeySecurityScheme: requiredField(APIKeySecuritySchemeSchema),
    httpAuthSecurityScheme: requiredField(HTTPAuthSecuritySchemeSchema),
    oauth2SecurityScheme: requiredField(OAuth2SecuritySchemeSchema),
    openIdConnectSecurityScheme: requiredField(OpenIdConnectSecuritySchemeSchema),
    mtlsSecurityScheme: requiredField(MutualTlsSecuritySchemeSchema)
  },
  {}
)

/** One way to authenticate callers (§4.5.1): exactly one of five. */
export type SecurityScheme = z.output<typeof SecuritySchemeSchema>
