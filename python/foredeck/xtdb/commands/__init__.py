"""The commands that only a store on XTDB has; `foredeck.store` names them."""
