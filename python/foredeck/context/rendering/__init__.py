"""How objects go out: layouts, and what is not sent twice."""
