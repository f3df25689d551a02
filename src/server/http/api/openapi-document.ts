// The OpenAPI document of an API. It is generated when it is first read: few servers are asked for it.
import type { Api } from '../../../contract/openapi.ts'
import { lazy } from '../../../lib/lazy.ts'

export const createOpenApiDocument = (api: Api) =>
  lazy(async () => {
    const { describe } = await import('../../../contract/openapi.ts')
    return describe(api)
  })
