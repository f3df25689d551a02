// Forms in a browser, with a CSRF token in a hidden field and in a cookie or session.
import type { Test } from '../cleanup.ts'
import { openPage, type Site } from './public-edge.ts'

/** The page of each site has a form with the field `name`, and greets by that name. */
export async function assertForms(t: Test, sites: Site[]): Promise<void> {
  for (const site of sites) {
    const page = await openPage(t)
    await page.goto(site.url)
    await page.locator('input[name=name]').fill('Ann')
    await page.getByRole('button').click()
    await page.getByText('Hello Ann').waitFor()
  }
}
