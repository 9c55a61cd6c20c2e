"""How objects go out: layouts, what is not sent twice, what brackets a view."""
