import { ActionIcon, type MantineColorScheme, Menu, useMantineColorScheme } from '@mantine/core'
import { CheckIcon, MoonIcon, ScreenIcon, SunIcon } from '../icons.tsx'
import classes from './shell.module.css'

const schemes = [
  { value: 'light', name: 'Light', icon: <SunIcon /> },
  { value: 'dark', name: 'Dark', icon: <MoonIcon /> },
  { value: 'auto', name: 'System', icon: <ScreenIcon /> },
] as const

export function ColorSchemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon
          variant="transparent"
          size="lg"
          className={classes.headerButton}
          aria-label="Color scheme"
        >
          {schemes.find(({ value }) => value === colorScheme)?.icon}
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.RadioGroup
          value={colorScheme}
          onChange={(value) => setColorScheme(value as MantineColorScheme)}
          aria-label="Color scheme"
        >
          {schemes.map(({ value, name, icon }) => (
            <Menu.RadioItem
              key={value}
              value={value}
              rightSection={icon}
              checkIcon={<CheckIcon size={16} />}
              closeMenuOnClick
            >
              {name}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  )
}
